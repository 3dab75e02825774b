/** The type of an answer whose JSON is made by splicing, which the framework can't know. */
export const jsonType = 'application/json; charset=utf-8'
