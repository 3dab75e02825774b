import { fileURLToPath, pathToFileURL } from 'node:url'
import { resolve } from 'node:path'

/** Where uploaded files are kept: a directory of this machine, or a bucket. */
export type FilePlace = { kind: 'directory', path: string } | BucketPlace

export interface BucketPlace {
  kind: 'bucket'
  bucket: string
  /** What its keys begin with: '' or with a slash at its end. */
  prefix: string
  /** Where the service reaches the store, and where agents do: origins. */
  endpoint: string
  publicEndpoint: string
  region: string
  /** Whether the bucket is in the path of a URL, and not in its host. */
  isPathStyle: boolean
  accessKey: string
  /** The secret, or `@` and the path of a file with it, which is read again. */
  secret: string
}

interface BucketSettings {
  S3_ENDPOINT?: string | undefined
  S3_PUBLIC_ENDPOINT?: string | undefined
  S3_REGION: string
  S3_PATH_STYLE: 'on' | 'off'
  AWS_ACCESS_KEY_ID?: string | undefined
  AWS_SECRET_ACCESS_KEY?: string | undefined
}

/** The variable that is missing, or says nothing that can be. */
type WrongOfFiles = 'FILES_URL' | keyof BucketSettings

/** @returns undefined if there is no store; the wrong variable's name */
export function filePlaceOf (url: string | undefined, settings: BucketSettings): FilePlace | WrongOfFiles | undefined {
  if (url === undefined) return undefined
  if (url.startsWith('file:')) return directoryOf(url) ?? 'FILES_URL'
  // Each part of the prefix is a name, so that no key has a part that a client would resolve.
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(\/.*)?$/.exec(url) ?? []
  const parts = prefix.split('/').filter(part => part !== '')
  if (bucket === undefined || !parts.every(part => /^[A-Za-z0-9._-]+$/.test(part) && !/^\.\.?$/.test(part))) {
    return 'FILES_URL'
  }
  const { S3_REGION: region, AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secret } = settings
  const { S3_ENDPOINT: endpoint = `https://s3.${region}.amazonaws.com`, S3_PUBLIC_ENDPOINT: open = endpoint } = settings
  if (!isEndpoint(endpoint)) return 'S3_ENDPOINT'
  if (!isEndpoint(open)) return 'S3_PUBLIC_ENDPOINT'
  if (accessKey === undefined) return 'AWS_ACCESS_KEY_ID'
  if (secret === undefined) return 'AWS_SECRET_ACCESS_KEY'
  return {
    kind: 'bucket',
    bucket,
    prefix: parts.map(part => `${part}/`).join(''),
    endpoint: new URL(endpoint).origin,
    publicEndpoint: new URL(open).origin,
    region,
    isPathStyle: settings.S3_PATH_STYLE === 'on',
    accessKey,
    secret
  }
}

function directoryOf (url: string): FilePlace | undefined {
  try {
    const { host, search, hash } = new URL(url)
    // Of a file on another machine nothing is known here.
    return host + search + hash === '' && url.startsWith('file:///')
      ? { kind: 'directory', path: fileURLToPath(url) }
      : undefined
  } catch {
    return undefined
  }
}

function isEndpoint (text: string): boolean {
  return /^https?:\/\/[^/?#@]+\/?$/.test(text) && URL.canParse(text)
}

/** The setting for a directory beside others in this one. */
export function filesUrlIn (dataDir: string): string {
  return String(pathToFileURL(resolve(dataDir, 'files')))
}
