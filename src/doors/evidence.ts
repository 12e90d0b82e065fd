import '../base/node-version.ts'

export {
  type BisectCheck,
  type Bisection,
  type BisectOptions,
  bisect,
  type FirstFailing,
  type Probe,
} from '../evidence/bisect.ts'
export {
  type BlamedChunk,
  type BlamedLine,
  type BlameOptions,
  blame,
  type SeenChunk,
} from '../evidence/blame.ts'
export { type Bundle, type BundleRun, readBundle } from '../evidence/bundle/read.ts'
export type { BundleProblem, BundleVerification } from '../evidence/bundle/verification.ts'
export { type VerifyOptions, verifyBundle } from '../evidence/bundle/verify.ts'
export { type BundleOptions, writeBundle } from '../evidence/bundle/write.ts'
export type { Dossier } from '../evidence/dossier/dossier.ts'
export { type DossierOptions, dossierOf, dossierOfSessions } from '../evidence/dossier/dossier-of.ts'
export { dossierHtml } from '../evidence/dossier/html/page.ts'
export { dossierMarkdown } from '../evidence/dossier/markdown.ts'
export { type AtifOptions, toATIF } from '../evidence/exports/atif.ts'
export type { AtifStep, AtifTrajectory } from '../evidence/exports/atif-format.ts'
export { type OpenAIMessage, toOpenAIMessages } from '../evidence/exports/openai.ts'
export {
  type PreferenceOptions,
  type PreferencePair,
  preferencePairs,
} from '../evidence/exports/preference.ts'
export { toUIMessages, type UIMessage, type UIPart } from '../evidence/exports/ui.ts'
export type { Producer } from '../evidence/producer.ts'
export type { SignatureReport, SigningKey } from '../evidence/signature.ts'
export type { Divergence, DivergenceCause } from '../run/replay/divergence.ts'
export type { ToolComparison, Unasked } from '../run/replay/replay.ts'
export type { Spent } from '../run/replay/report.ts'
export type { RunModule } from '../run/replay/resume.ts'
