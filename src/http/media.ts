/** The content type of an answer whose JSON is spliced together, so that the framework can't know its type. */
export const jsonType = 'application/json; charset=utf-8'
