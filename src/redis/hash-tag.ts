/**
 * The hash tag of a key (in a Redis Cluster the text in braces decides the slot). It is the tag of the key's partition. No prefix has braces.
 * Of a feed outside a Cluster, which is in no partition, it is any text, and so of no partition either.
 */
export function tagIn (key: string): string {
  return key.slice(key.indexOf('{') + 1, key.indexOf('}'))
}
