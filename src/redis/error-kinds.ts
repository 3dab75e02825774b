/** What Redis's own errors mean for a call that met one. */

/** Errors that say: not executed, and may be over in a moment. The last two: a script met keys whose slot is moving, in the words of Redis 7 and of Redis 8. */
export const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node|during rehashing of the slot/
/** Errors that a server of another version than is needed gives, or one that hides a command: what was asked can't be done there. */
export const unsupported = /^ERR ([Uu]nknown (Redis |Valkey )?(sub)?command|Error compiling script|Unexpected flag in script shebang)\b/
/** Errors that say: not executed, and won't be until an operator does something. The last two: rights that lack inside a script. */
export const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
