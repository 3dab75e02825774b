import { Problem, Unavailable } from '../../core/errors.ts'
import type { FilePlace } from '../../core/file-place.ts'
import { BucketStore } from '../../files/bucket.ts'
import { DirectoryStore, UnavailableStore } from '../../files/directory.ts'
import type { FileRecords } from '../../store/files.ts'
import type { Finding } from './server.ts'

/** Looks at the store of files as the service would use it, and whether it is the one that Redis knows. */
export async function checkFiles (place: FilePlace | undefined, records: FileRecords): Promise<Finding[]> {
  if (place === undefined) return []
  try {
    return place.kind === 'directory' ? await checkDirectory(place.path, records) : await checkBucket(place, records)
  } catch (error) {
    if (!(error instanceof Unavailable || error instanceof Problem)) throw error
    return [{
      level: 'error',
      name: 'files',
      saw: error instanceof Problem ? error.more.detail! : error.message,
      set: 'FILES_URL, the S3_ settings and the key, or the way to the store',
      why: 'uploads and downloads are answered 503'
    }]
  }
}

async function checkDirectory (path: string, records: FileRecords): Promise<Finding[]> {
  const store = new DirectoryStore(path, () => '')
  const known = await records.stores()
  const mine = await store.open().catch(error => {
    // Nothing is made here: the service does that at the first upload.
    if (error instanceof UnavailableStore && known.length === 0) return null
    throw error
  })
  if (mine === null) return [{ level: 'ok', name: 'files', saw: `none in ${path} yet: the first upload begins there` }]
  const other = otherStore(mine, known)
  const { free, spare } = await store.room()
  const gigabytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`
  const room: Finding = free < spare
    ? {
        level: 'error',
        name: 'files',
        saw: `${gigabytes(free)} of the disk of ${path} are free`,
        set: `${gigabytes(spare)} at least: delete something, or take a larger disk`,
        why: 'uploads are answered 503; what is there is given'
      }
    : { level: 'ok', name: 'files', saw: `in ${path}, ${gigabytes(free)} free` }
  return [...other, room]
}

async function checkBucket (place: Extract<FilePlace, { kind: 'bucket' }>, records: FileRecords): Promise<Finding[]> {
  const store = new BucketStore(place)
  const id = await store.open()
  const other = otherStore(id, await records.stores())
  const fault = await store.fault()
  return [...other, fault === null
    ? { level: 'ok', name: 'files', saw: `${id} checks what it takes` }
    : {
        level: 'error',
        name: 'files',
        saw: `${id} can’t have files: ${fault}`,
        set: 'FILES_URL: a store that checks x-amz-checksum-sha256 and says it',
        why: 'POST /api/files is answered 503'
      }]
}

/** @param known the stores that Redis has records of: the data set's comes first */
function otherStore (mine: string, known: readonly string[]): Finding[] {
  const [first = mine] = known
  if (first !== mine) {
    return [{
      level: 'error',
      name: 'files',
      saw: `the store here is ${mine}, and Redis has the records of files in ${first}`,
      set: `FILES_URL here to ${first}, as at the other replicas; or mount its directory, whose store.json has that id`,
      why: 'a replica with another store answers uploads and downloads with 503'
    }]
  }
  return known.length < 2
    ? []
    : [{
        level: 'error',
        name: 'files',
        saw: `some tenants’ files are in other stores, ${known.slice(1).join(', ')}; the store here, ${mine}, is the data set’s`,
        set: 'the replicas that have those to this one, and what docs/files.md says of starting over',
        why: 'those tenants’ uploads and downloads are answered 503 here'
      }]
}
