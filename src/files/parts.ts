import type { Config } from '../config.ts'
import type { Reads } from '../store/reads.ts'
import type { Store } from '../store/store.ts'
import { BucketStore } from './bucket.ts'
import { TransferCounts } from './counts.ts'
import { DirectoryStore } from './directory.ts'
import type { Spare } from './directory.ts'
import { FileService } from './service.ts'
import { FileSweep } from './sweep.ts'
import { StoreFaults } from './faults.ts'

/** What differs in tests: what stays free of the disk, and how long a transfer may stand still (ms). */
export interface FileTrials { spare?: Spare, idle?: number }

/** What there is of files. `directory`: the store, if the service itself has the bytes. */
interface FileParts {
  files: FileService
  directory: DirectoryStore | null
  sweep: FileSweep | null
  counts: TransferCounts
}

export function filePartsOf (
  { files: place, fileLimit: limit, filesQuota: quota }: Config, baseUrl: () => string,
  { files: records, takeFileSweep: take }: Pick<Store, 'files' | 'takeFileSweep'>, reads: Pick<Reads, 'page'>,
  log: ConstructorParameters<typeof StoreFaults>[0], onFault: (error: unknown) => void, { spare }: FileTrials = {}
): FileParts {
  const directory = place?.kind === 'directory' ? new DirectoryStore(place.path, baseUrl, spare) : null
  const faults = new StoreFaults(log)
  const objects = place?.kind === 'bucket' ? new BucketStore(place, why => faults.note('trial', why)) : directory
  const files = new FileService(objects, records, { limit, quota, faults, reads })
  const sweep = objects === null ? null : new FileSweep({ objects, files, records, take, onFault })
  return { files, directory, sweep, counts: new TransferCounts() }
}
