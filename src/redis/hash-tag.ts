/** The hash tag of a key (Redis Cluster: what stands in its braces decides its slot). It names the partition that the key lies in. No prefix has braces. */
export function tagIn (key: string): string {
  return key.slice(key.indexOf('{') + 1, key.indexOf('}'))
}
