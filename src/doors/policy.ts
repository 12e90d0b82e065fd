import '../base/node-version.ts'

export { narrow, type Policy, policy } from '../tool/policy/policy.ts'
export type { PolicyRules } from '../tool/policy/rules.ts'
