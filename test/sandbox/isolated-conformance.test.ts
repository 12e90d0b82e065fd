import { testSandbox } from '../../src/testing/index.ts'
import { isolated, testHere } from './isolated-here.ts'

for (const { name, run } of testSandbox(isolated)) testHere(name, run)
