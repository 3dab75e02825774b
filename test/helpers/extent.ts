/**
 * Whether long tests run in full: yes, unless `npm test` or `.ci/run` run many files and use the short form (TEST_RUN, set by test/run.ts).
 */
export const isWhole = process.env.TEST_RUN === undefined || process.env.TEST_RUN === 'all'

/** tap's options for a test that only runs in full runs. */
export const skipUnlessWhole = isWhole ? {} : { skip: 'npm run test:all runs it' }
