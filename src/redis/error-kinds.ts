/** What Redis's own errors mean for a call that met one. */

/** Errors that say: not executed, and may be over in a moment. The last: a sweep met a handoff whose slot is moving away. */
export const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node/
/** Errors that a server of another version than is needed gives, or one that hides a command: what was asked can't be done there. */
export const unsupported = /^ERR ([Uu]nknown (Redis |Valkey )?(sub)?command|Error compiling script|Unexpected flag in script shebang)\b/
/** Errors that say: not executed, and won't be until an operator does something. The last two: rights that lack inside a script. */
export const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
