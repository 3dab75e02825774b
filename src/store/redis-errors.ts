/** What Redis's own errors mean for a call that met one. */

/** Errors that say: not executed, and may be over in a moment. The last: a sweep met a handoff whose slot is moving away. */
export const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node/
/** Errors that say: not executed, and won't be until an operator does something. The last two: rights that lack inside a script. */
export const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
