/** What Redis's errors mean for a call. */

/** Not executed, and the reason may soon be over. The last two: a script met keys whose slot is moving, in the words of Redis 7 and of Redis 8. */
export const passing = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b|non local key in a cluster node|during rehashing of the slot/
/** The server's version is wrong, or it hides a command: it can't execute the call. */
export const unsupported = /^ERR ([Uu]nknown (Redis |Valkey )?(sub)?command|Error compiling script|Unexpected flag in script shebang)\b/
/** Not executed, and an operator has to act first. The last two: missing rights inside a script; what it wrote before that stays. */
export const refusing = /^(OOM|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|ERR The user executing the script|ERR ACL failure)\b/
