import t from 'tap'
import { passesInPython } from '../helpers/python.ts'

t.test('the Python client, with the real service', t => passesInPython(t, ['test_client', 'test_keys']))
