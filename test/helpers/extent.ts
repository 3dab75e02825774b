/**
 * Which part of a file runs. TEST_RUN, set by test/run.ts, says of which run it is: `npm test` is quick, `.ci/run` adds smoke, all is everything.
 * Without it, when files are named, they run in full.
 */
const run = process.env.TEST_RUN

/** Whether long tests run in full. */
export const isWhole = run === undefined || run === 'all'

/** tap's options for a test that only runs in full runs. */
export const skipUnlessWhole = isWhole ? {} : { skip: 'npm run test:all runs it' }

/** tap's options for a slow test that something quicker stands for in `npm test`. `.ci/run` runs it on other servers and another Node. */
export const skipInQuick = run === 'quick' ? { skip: 'npm run test:all runs it' } : {}

/** Whether the likes of what is tested are left to `.ci/run`, which sets TEST_WIDE. */
export const isNarrow = run === 'quick' && process.env.TEST_WIDE !== 'on'

/** How a store lies: on one Redis, or as in a Cluster, where a call has keys of one partition only. For files that do all for each. */
export const arrangements: readonly boolean[] = isNarrow ? [false] : [false, true]
