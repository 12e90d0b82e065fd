import { type ErrorCode, RathError, Session } from 'openrath'
import { expect, test } from 'vitest'
import { exportsOf } from './imports.ts'
import { read } from './tree.ts'

// The names other people's code relies on, written out. A test that fails here asks whether the change is meant; if so,
// it belongs in CHANGELOG.md, and a name that goes or changes its meaning in docs/decisions/ too.

const sessionValues = ['RathError', 'Session', 'readSessions', 'sessionGraph', 'writeSessions']

const sessionTypes = [
  'AnswerPart',
  'AnswerPartInput',
  'Blame',
  'Chunk',
  'ChunkInput',
  'ChunkKind',
  'ChunkList',
  'Digest',
  'ErrorCode',
  'FileChange',
  'FilePart',
  'ForkOptions',
  'GraphEdge',
  'GraphNode',
  'ImagePart',
  'Json',
  'JsonObject',
  'LeftOutChunk',
  'Lineage',
  'MemoryHit',
  'MergeBranch',
  'MergeConflict',
  'MergeOptions',
  'MergePolicy',
  'MergedBranch',
  'Message',
  'Operation',
  'OperationOptions',
  'Part',
  'PartInput',
  'Pending',
  'Placement',
  'ReadOptions',
  'ReasoningPart',
  'Retry',
  'SessionDiff',
  'SessionGraph',
  'TextPart',
  'ToolCallPart',
  'ToolOutcome',
  'Usage',
  'Verification',
  'VerificationProblem',
  'Workspace',
]

const runtimeValues = [
  'Agent',
  'Compressor',
  'EmptyWorkflow',
  'FlowToolCall',
  'PendingSession',
  'Provider',
  'Selector',
  'Workflow',
  'builtinTools',
  'configure',
  'createRuntime',
  'createStore',
  'flow',
  'localBackend',
  'mcpTools',
  'narrow',
  'openStore',
  'policy',
  'priceOf',
  'restore',
  'tool',
]

const runtimeTypes = [
  'AgentOptions',
  'ApprovalDecision',
  'ApprovalRequest',
  'Approve',
  'AutoCompress',
  'BlobStore',
  'BudgetLimits',
  'BuiltinName',
  'CallOptions',
  'CompressorOptions',
  'Decision',
  'Durability',
  'Effect',
  'EventListener',
  'ExecHandle',
  'ExecOptions',
  'ExecOutput',
  'ExecResult',
  'FileEntry',
  'FileKind',
  'FileStat',
  'FinishReason',
  'GcOptions',
  'GcReport',
  'JournalEntry',
  'Keep',
  'LocalOptions',
  'LocalSpec',
  'McpOptions',
  'McpServer',
  'McpTools',
  'Model',
  'ModelAnswer',
  'ModelContext',
  'ModelDelta',
  'ModelLike',
  'ModelPart',
  'ModelRequest',
  'ModelSettings',
  'NewEntry',
  'NewRun',
  'Policy',
  'PolicyRules',
  'Price',
  'PriceTable',
  'ProviderBudget',
  'ProviderOptions',
  'Redact',
  'RetryOptions',
  'RunChange',
  'RunEnd',
  'RunEvent',
  'RunRow',
  'RunStatus',
  'RunStore',
  'Runtime',
  'RuntimeOptions',
  'Sandbox',
  'SandboxBackend',
  'SandboxCapabilities',
  'SandboxFiles',
  'SandboxSpec',
  'SearchHit',
  'SearchMatch',
  'SearchOptions',
  'SearchQuery',
  'SearchResult',
  'SelectorOptions',
  'SessionChange',
  'SessionFilter',
  'SessionInput',
  'SessionPage',
  'SessionRow',
  'SessionStore',
  'Store',
  'StoreDriver',
  'StoreOptions',
  'SubscribeOptions',
  'Tool',
  'ToolContent',
  'ToolContext',
  'ToolDescription',
  'ToolFailure',
  'ToolSchema',
]

const testingValues = ['recorded', 'scripted', 'testSandbox', 'testStore']

const testingTypes = [
  'Answer',
  'AnswerScript',
  'ConformanceCase',
  'OpenStore',
  'RecordedOptions',
  'SandboxTestOptions',
  'Script',
  'ScriptedFault',
  'ScriptedModel',
  'ScriptedOptions',
  'StoreUnderTest',
]

const entries = {
  openrath: {
    built: 'dist/index',
    values: [...sessionValues, ...runtimeValues].sort(),
    types: [...sessionTypes, ...runtimeTypes].sort(),
  },
  'openrath/session': { built: 'dist/session/index', values: sessionValues, types: sessionTypes },
  'openrath/testing': { built: 'dist/testing/index', values: testingValues, types: testingTypes },
}

test('every door of the package has its pin here', () => {
  const { exports } = JSON.parse(read('package.json'))
  const doors = Object.keys(exports).filter(path => path !== './package.json')
  expect(Object.keys(entries)).toEqual(doors.map(path => `openrath${path.slice(1)}`))
})

for (const [name, { built, values, types }] of Object.entries(entries)) {
  test(`${name} exports these names and no others`, async () => {
    expect(Object.keys(await import(/* @vite-ignore */ name)).sort()).toEqual(values)
    const declared = exportsOf(`${built}.d.ts`, read(`${built}.d.ts`))
    expect(declared.types).toEqual(types)
    expect(declared.values).toEqual(values)
  })
}

test('Session has these members and no others', () => {
  const inspect = Symbol.for('nodejs.util.inspect.custom')
  expect(
    Reflect.ownKeys(Session).filter(name => !['length', 'name', 'prototype'].includes(String(name))),
  ).toEqual(['fromUserMessage', 'fromAgentPrompt', 'create', 'fromJSONL'])
  expect(new Set(Reflect.ownKeys(Session.prototype))).toEqual(
    new Set([
      ...['constructor', 'id', 'head', 'state', 'branch', 'lineage', 'length', 'chunks', 'text', 'usage'],
      ...['placement', 'pending', 'messages', 'append', 'user', 'to', 'fork', 'forks', 'detach', 'rewind'],
      ...['merge', 'diff', 'verify', 'toJSONL', 'toString', 'toJSON', inspect],
    ]),
  )
})

test('the table of error codes is closed, with the retry and blame of each', () => {
  // The type makes a code that is missing here, or here and nowhere else, fail the typecheck.
  const codes: Record<ErrorCode, readonly [string, string]> = {
    'invalid-argument': ['never', 'caller'],
    'invalid-json': ['never', 'caller'],
    'invalid-chunk': ['never', 'caller'],
    'foreign-chunk': ['never', 'caller'],
    'unknown-chunk': ['never', 'caller'],
    'merge-nothing': ['never', 'caller'],
    'placement-conflict': ['never', 'caller'],
    'graph-incomplete': ['never', 'caller'],
    'graph-cycle': ['never', 'caller'],
    cancelled: ['never', 'caller'],
    'run-failed': ['never', 'caller'],
    'output-invalid': ['now', 'model'],
    'unknown-session': ['never', 'caller'],
    'ambiguous-session': ['never', 'caller'],
    'session-conflict': ['never', 'caller'],
    'unknown-blob': ['never', 'caller'],
    'unknown-run': ['never', 'caller'],
    'run-exists': ['never', 'caller'],
    'run-owned': ['after', 'caller'],
    'run-fenced': ['never', 'runtime'],
    'journal-conflict': ['never', 'runtime'],
    'store-busy': ['after', 'runtime'],
    'store-full': ['after', 'runtime'],
    'store-read-only': ['never', 'caller'],
    'store-corrupt': ['never', 'runtime'],
    'store-newer': ['never', 'caller'],
    'store-foreign': ['never', 'caller'],
    'store-closed': ['never', 'caller'],
    'store-unreachable': ['after', 'runtime'],
    'store-failed': ['after', 'runtime'],
    'chunk-missing': ['now', 'runtime'],
    'model-rate-limited': ['after', 'model'],
    'model-overloaded': ['after', 'model'],
    'model-unreachable': ['after', 'model'],
    'model-broken-stream': ['now', 'model'],
    'model-malformed': ['never', 'model'],
    'model-rejected': ['never', 'caller'],
    'model-unauthorized': ['never', 'caller'],
    'model-quota-spent': ['never', 'caller'],
    'model-missing': ['never', 'caller'],
    'unknown-model': ['never', 'caller'],
    'unknown-provider': ['never', 'caller'],
    'credentials-missing': ['never', 'caller'],
    'credentials-mixed': ['never', 'caller'],
    'credentials-exposed': ['never', 'caller'],
    'config-malformed': ['never', 'caller'],
    'script-mismatch': ['never', 'caller'],
    'recording-missing': ['never', 'caller'],
    'missing-package': ['never', 'caller'],
    'tool-arguments': ['never', 'model'],
    'tool-result': ['never', 'tool'],
    'tool-failed': ['never', 'tool'],
    'mcp-unreachable': ['after', 'tool'],
    'unknown-sandbox': ['never', 'caller'],
    'placement-missing': ['never', 'caller'],
    'sandbox-unavailable': ['never', 'caller'],
    'sandbox-unsupported': ['never', 'caller'],
    'sandbox-closed': ['never', 'caller'],
    'sandbox-failed': ['never', 'sandbox'],
    'path-outside': ['never', 'model'],
    'path-missing': ['never', 'model'],
    'path-kind': ['never', 'model'],
    'format-malformed': ['never', 'caller'],
    'format-newer': ['never', 'caller'],
  }
  for (const [code, [retry, blame]] of Object.entries(codes)) {
    const error = new RathError(code as ErrorCode, 'What happened.', { data: { line: 3 } })
    expect(error).toMatchObject({ name: 'RathError', code, retry, blame, data: { line: 3 } })
    expect(error).toBeInstanceOf(Error)
  }
})
