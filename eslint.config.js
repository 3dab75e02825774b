import neostandard from 'neostandard'

export default neostandard({ ts: true, ignores: ['dist/**', 'src/client/dist/**', 'src/client/api.ts', '.tap/**', '.cache/**'] })
