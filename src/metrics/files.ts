import type { TransferCounts } from '../files/counts.ts'
import type { FileSweep } from '../files/sweep.ts'
import type { Families, Sample } from './families.ts'

/** @param sweep null without a store */
export function fileFamilies (
  families: Families, { transfers, sweep }: { transfers: TransferCounts, sweep: Pick<FileSweep, 'counts'> | null }
): void {
  families.counter({
    name: 'handoff_file_bytes_total',
    help: 'Bytes of files that came to (put) and went from (got) a directory. A bucket’s go past the service.',
    labels: ['direction'],
  }, () => Object.entries(transfers.bytes).map(([direction, count]) => [{ direction }, count]))
  families.counter({
    name: 'handoff_file_transfers_total',
    help: 'Transfers of files of a directory: done, or failed (cut, or not what was declared).',
    labels: ['direction', 'outcome'],
  }, () => (['put', 'got'] as const).flatMap(direction => (['done', 'failed'] as const).map(
    (outcome): Sample => [{ direction, outcome }, transfers[outcome][direction]]
  )))
  families.gauge({ name: 'handoff_file_transfers', help: 'Transfers of files that are under way.' },
    () => [[{}, transfers.underWay]])
  families.counter({
    name: 'handoff_files_removed_total',
    help: 'Files removed: unfinished (not whole in time), unheld (nothing has them) or orphans (without a record). ' +
      'Only the replica that sweeps files counts them.',
    labels: ['because'],
  }, () => Object.entries(sweep?.counts ?? {}).map(([because, count]) => [{ because }, count]))
}
