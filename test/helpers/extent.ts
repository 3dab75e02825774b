/**
 * How much of a long test is run: all of it, unless `npm test` or `.ci/run` go through many files and take the short form (TEST_RUN, set by
 * test/run.ts).
 */
export const isWhole = process.env.TEST_RUN === undefined || process.env.TEST_RUN === 'all'

/** Options of a test that only the whole has. */
export const skipUnlessWhole = isWhole ? {} : { skip: 'npm run test:all runs it' }
