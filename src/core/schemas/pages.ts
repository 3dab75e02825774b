import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import { nullable } from './parts.ts'

/** What all lists that come in pages have. */

/** The query's members. */
export const pageQuery = {
  cursor: Type.Optional(Type.String({ maxLength: 128, description: 'next_cursor of the previous page.' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Largest number of items per page.' })
  ),
}

/** A page. @param order what its items are sorted by, as a sentence with a space behind it */
export function pageOf<T extends TSchema> (item: T, description: string, order = '') {
  return Type.Object({
    items: Type.Array(item, {
      description: `${order}May be fewer than \`limit\`, or none, even if there is a next_cursor.`
    }),
    next_cursor: nullable<string>(
      'string', { description: 'The cursor of the next page; null on the last one.', examples: [null] }
    ),
  }, { description })
}
