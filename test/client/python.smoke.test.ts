import t from 'tap'
import { passesInPython } from '../helpers/python.ts'

t.test('the Python client, where something is in the way', t => passesInPython(t, ['test_faults']))
