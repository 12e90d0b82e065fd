import '../base/node-version.ts'

export { type Price, type PriceTable, priceOf } from '../model/prices.ts'
export type { CostLimit, ProviderBudget } from '../model/provider.ts'
export type {
  FinishReason,
  Model,
  ModelAnswer,
  ModelContext,
  ModelDelta,
  ModelRequest,
  ModelSettings,
  ToolDescription,
} from '../model/spec.ts'
