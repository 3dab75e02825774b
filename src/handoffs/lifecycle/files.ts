import { Problem, invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { cutFiles, faultsInFiles, filesMember, keptFile, readFiles, uploadIn } from '../../core/files.ts'
import type { FilesMember, GivenFile } from '../../core/files.ts'
import type { Caller } from '../../core/model.ts'
import type { Requester } from '../../store/requester.ts'

/** Files of a pass or a done, once they are looked up, and where their answers' readers fetch them. */

/** What is known of an upload that is there whole. */
interface Upload { name: string, media_type: string | null, bytes: number, sha256: string }

/**
 * The uploads that an agent may pass on, by their ids. What isn't there whole, or isn't this agent's nor part of what
 * it may read, is left out. So is all while the service has no store.
 */
async function findUploads (
  tenant: string, agent: string, ids: readonly string[]
): Promise<ReadonlyMap<string, Upload>> {
  return new Map()
}

/**
 * `text`: the member to be kept; empty for no files. `uploads`: the ids of those that lie here. `problem`: why they are
 * refused, once all is checked that comes before.
 */
export interface AcceptedFiles { text: Buffer, uploads: readonly string[], problem: Problem | null }

export const noFiles: AcceptedFiles = { text: Buffer.alloc(0), uploads: [], problem: null }

/** @param given what the schema has accepted @throws {Problem} they can't be files, whatever is looked up */
export async function acceptFiles (
  { tenant, agent }: Caller, given: readonly GivenFile[], name: FilesMember
): Promise<AcceptedFiles> {
  const wrong = faultsInFiles(given, '/files')
  if (wrong.length > 0) throw invalid(...wrong)
  const uploads = [...new Set(given.map(({ uri }) => uploadIn(uri)).filter(id => id !== null))]
  const found = uploads.length === 0 ? new Map<string, Upload>() : await findUploads(tenant, agent, uploads)
  const missing: string[] = []
  const differing: Fault[] = []
  const files = given.map((file, at) => {
    const id = uploadIn(file.uri)
    const upload = id === null ? undefined : found.get(id)
    if (id !== null && upload === undefined) missing.push(file.uri)
    if (upload !== undefined) differing.push(...differences(file, upload, `/files/${at}`))
    return keptFile(file, upload ?? file)
  })
  const problem = missing.length > 0 ? fileMissing(missing) : differing.length > 0 ? invalid(...differing) : null
  return { text: filesMember(name, files), uploads, problem }
}

function differences (file: GivenFile, upload: Upload, at: string): Fault[] {
  const isOther = {
    media_type: file.media_type !== upload.media_type,
    bytes: file.bytes !== upload.bytes,
    sha256: file.sha256?.toLowerCase() !== upload.sha256
  }
  return (['media_type', 'bytes', 'sha256'] as const).filter(name => file[name] != null && isOther[name])
    .map(name => ({ pointer: `${at}/${name}`, message: `differs from the upload’s, ${upload[name] ?? 'which has none'}` }))
}

function fileMissing (uris: readonly string[]): Problem {
  return new Problem('file_missing', {
    detail: `There is no upload of yours, whole, for ${JSON.stringify(uris[0]!.slice(0, 100))}; upload the file first.`
  })
}

/** Where a file can be fetched for now; null for a link, whose place is its own. */
type FileUrl = { url: string, expires_at: string } | null

/** Whether an answer has the URLs of its files. One of many has none: GET /api/files/:id has them. */
export type Urls = 'withUrls' | 'withoutUrls'

export function urlsFor ({ isOneOfMany }: Requester): Urls {
  return isOneOfMany === true ? 'withoutUrls' : 'withUrls'
}

/** The member with the URLs of a text's files, behind other members; empty for no files. */
export function urlsMember (name: FilesMember, text: Buffer | null): string {
  const files = text === null ? null : cutFiles(text, name).files
  if (files === null) return ''
  const urls = readFiles(files).map((): FileUrl => null)
  return `,"${name === 'files' ? 'file_urls' : 'result_file_urls'}":${JSON.stringify(urls)}`
}
