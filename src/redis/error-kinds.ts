/** What Redis's errors mean for a call. */

/** Not executed, and the reason may soon be over. The last one: the sweep met a handoff whose slot is moving away. */
export const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node/
/** The server's version is wrong, or it hides a command: it can't execute the call. */
export const unsupported = /^ERR ([Uu]nknown (Redis |Valkey )?(sub)?command|Error compiling script|Unexpected flag in script shebang)\b/
/** Not executed, and an operator has to act first. The last two: missing rights inside a script. */
export const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
