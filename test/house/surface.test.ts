import { type ErrorCode, RathError, Session } from 'openrath'
import { expect, test } from 'vitest'
import { exportsOf } from './imports.ts'
import { read } from './tree.ts'

// The names other people's code relies on, written out. A test that fails here asks whether the change is meant; if so,
// it belongs in CHANGELOG.md, and a name that goes or changes its meaning in docs/decisions/ too.

const doors: Record<string, { readonly built: string; readonly values: string; readonly types: string }> = {
  openrath: {
    built: 'dist/index',
    values: `
      Agent Compressor EmptyWorkflow Parallel PendingSession Provider RathError Selector Sequential Session
      Workflow builtinTools configure conversation createRuntime effect map mcpTools sessionGraph tool`,
    types: `
      AgentOptions AgentToolOptions ApprovalAnswer ApprovalDecision ApprovalRequest Approve AutoCompress
      BeforeForwardHook BudgetLimits BuiltinName CallOptions Chunk ChunkInput ChunkKind CompressorOptions
      Decision Digest Effect EffectOptions ErrorCode EventListener FanOutOptions ForkOptions ForwardContext
      ForwardHook Join Json JsonObject Lineage MapOptions McpOptions McpServer McpTools MergeOptions Message
      ModelLike OnFailure OpenApproval ParallelOptions Placement ProviderOptions ReplayMode ReplayReport
      RetryBranch RetryOptions Reviewed RunEnd RunEvent RunOptions RunReport Runnable Runtime RuntimeOptions
      SelectorOptions SessionDiff SessionGraph SessionInput TelemetryOptions Tool ToolContent ToolContext
      ToolDefinition ToolFailure ToolOutcome ToolSchema Unfinished Usage Verification`,
  },
  'openrath/session': {
    built: 'dist/session/index',
    values: `
      RathError Session readSessions sessionGraph writeSessions`,
    types: `
      AnswerPart AnswerPartInput Blame Chunk ChunkInput ChunkKind ChunkList Digest ErrorCode FileChange
      FileConflict FilePart ForkOptions GraphEdge GraphNode ImagePart Json JsonObject LeftOutChunk Lineage
      MemoryHit MergeBranch MergeConflict MergeOptions MergePolicy MergedBranch Message OnConflict Operation
      OperationOptions Part PartInput Pending Placement ReadOptions ReasoningPart Retry SessionDiff
      SessionGraph Settlement TextPart ToolCallPart ToolOutcome Usage Verification VerificationProblem
      Workspace`,
  },
  'openrath/evidence': {
    built: 'dist/doors/evidence',
    values: `
      bisect blame dossierHtml dossierMarkdown dossierOf dossierOfSessions preferencePairs readBundle toATIF
      toOpenAIMessages toUIMessages verifyBundle writeBundle`,
    types: `
      AtifOptions AtifStep AtifTrajectory BisectCheck BisectOptions Bisection BlameOptions BlamedChunk
      BlamedLine Bundle BundleOptions BundleProblem BundleRun BundleVerification Divergence DivergenceCause
      Dossier DossierOptions FirstFailing OpenAIMessage PreferenceOptions PreferencePair Probe Producer
      RunModule SeenChunk SignatureReport SigningKey Spent ToolComparison UIMessage UIPart Unasked
      VerifyOptions`,
  },
  'openrath/flow': {
    built: 'dist/doors/flow',
    values: `
      Agent Compressor EmptyWorkflow FlowToolCall Parallel Selector Sequential Workflow map restore`,
    types: `
      AgentOptions AgentParam AgentToolOptions BeforeForwardHook Compiled CompressorOptions Decision
      FanOutOptions ForwardHook Join JoinBranches Judge Layer Manifest ManifestModel ManifestModule
      ManifestSandbox ManifestServer ManifestTool MapOptions ModelPart Module Needs OnFailure ParallelOptions
      Problem RetryBranch SelectorOptions WorkflowJson`,
  },
  'openrath/memory': {
    built: 'dist/doors/memory',
    values: `
      extractionPrompt localMemory`,
    types: `
      AiEmbeddingModel CommitMemoryOptions CommitOptions Committed Embedder FindOptions Found Hit
      LocalMemoryOptions Memory MemoryBackend MemoryCapabilities MemoryChange MemoryFilter MemoryLike
      MemoryPage MemoryRef MemorySource MemorySpec MemoryStanding MemoryStore MemoryTree NewMemory
      RecallOptions RecallPolicy RememberOptions Resource WriteOptions`,
  },
  'openrath/model': {
    built: 'dist/doors/model',
    values: `
      priceOf`,
    types: `
      CostLimit FinishReason Model ModelAnswer ModelContext ModelDelta ModelRequest ModelSettings Price
      PriceTable ProviderBudget ToolDescription`,
  },
  'openrath/policy': {
    built: 'dist/doors/policy',
    values: `
      narrow policy`,
    types: `
      Policy PolicyRules`,
  },
  'openrath/sandbox': {
    built: 'dist/doors/sandbox',
    values: `
      isolatedBackend localBackend`,
    types: `
      ExecHandle ExecOptions ExecOutput ExecResult FileEntry FileKind FileStat HostFolder IsolatedLimits
      IsolatedOptions IsolatedSpec LocalOptions LocalSpec Sandbox SandboxBackend SandboxCapabilities
      SandboxFiles SandboxSpec SearchMatch SearchQuery SearchResult`,
  },
  'openrath/store': {
    built: 'dist/doors/store',
    values: `
      createStore openStore`,
    types: `
      BlobStore CancelRequest Durability GcOptions GcReport JournalEntry Keep NewEntry NewRun PutOptions Redact RunChange
      RunFilter RunLog RunQueue RunRow RunStatus RunStore RunWrite SearchHit SearchOptions SessionChange
      SessionFilter SessionPage SessionRow SessionStore Store StoreDriver StoreOptions SubscribeOptions`,
  },
  'openrath/sandbox/docker': {
    built: 'dist/sandbox/drivers/docker/index',
    values: `
      dockerBackend leftovers`,
    types: `
      DockerOptions DockerSpec Leftover LeftoversOptions`,
  },
  'openrath/sandbox/opensandbox': {
    built: 'dist/sandbox/drivers/opensandbox/index',
    values: `
      openSandboxBackend`,
    types: `
      OpenSandboxOptions OpenSandboxSpec`,
  },
  'openrath/testing': {
    built: 'dist/testing/index',
    values: `
      fakeClock recorded recordedRuns scripted testMemory testSandbox testStore`,
    types: `
      Answer AnswerScript ConformanceCase FakeClock MemoryTestOptions OpenStore RecordedOptions RecordedRuns
      RecordedRunsOptions SandboxTestOptions Script ScriptedFault ScriptedModel ScriptedOptions StoreUnderTest`,
  },
}

const listed = (names: string) => names.trim().split(/\s+/)

test('every door of the package has its pin here', () => {
  const { exports } = JSON.parse(read('package.json'))
  const exported = Object.keys(exports).filter(path => path !== './package.json')
  expect(Object.keys(doors)).toEqual(exported.map(path => `openrath${path.slice(1)}`))
})

for (const [name, { built, values, types }] of Object.entries(doors)) {
  test(`${name} exports these names and no others`, async () => {
    expect(Object.keys(await import(/* @vite-ignore */ name)).sort()).toEqual(listed(values))
    const declared = exportsOf(`${built}.d.ts`, read(`${built}.d.ts`))
    expect(declared.types).toEqual(listed(types))
    expect(declared.values).toEqual(listed(values))
  })
}

test('the front door has at most 90 names, and no name means two things', () => {
  const front = doors.openrath as (typeof doors)[string]
  expect([...listed(front.values), ...listed(front.types)].length).toBeLessThanOrEqual(90)
  const from = new Map<string, string>()
  for (const { built } of Object.values(doors)) {
    const path = `${built}.d.ts`
    for (const [name, file] of exportsOf(path, read(path)).origins) {
      expect(from.get(name) ?? file, name).toBe(file)
      from.set(name, file)
    }
  }
})

test('Session has these members and no others', () => {
  const inspect = Symbol.for('nodejs.util.inspect.custom')
  expect(
    Reflect.ownKeys(Session).filter(name => !['length', 'name', 'prototype'].includes(String(name))),
  ).toEqual(['fromUserMessage', 'fromAgentPrompt', 'create', 'fromJSONL'])
  expect(new Set(Reflect.ownKeys(Session.prototype))).toEqual(
    new Set([
      ...[
        'constructor',
        'id',
        'head',
        'state',
        'stopped',
        'branch',
        'lineage',
        'length',
        'chunks',
        'text',
        'usage',
        'ownUsage',
      ],
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
    'merge-conflict': ['never', 'caller'],
    'merge-nothing': ['never', 'caller'],
    'placement-conflict': ['never', 'caller'],
    'graph-incomplete': ['never', 'caller'],
    'graph-cycle': ['never', 'caller'],
    cancelled: ['never', 'caller'],
    'run-failed': ['never', 'caller'],
    'output-invalid': ['now', 'model'],
    'budget-spent': ['after', 'caller'],
    'max-rounds': ['after', 'caller'],
    'unknown-session': ['never', 'caller'],
    'ambiguous-session': ['never', 'caller'],
    'session-conflict': ['never', 'caller'],
    'session-altered': ['never', 'caller'],
    'unknown-blob': ['never', 'caller'],
    'unknown-run': ['never', 'caller'],
    'run-exists': ['never', 'caller'],
    'run-owned': ['after', 'caller'],
    'run-fenced': ['never', 'runtime'],
    'run-waiting': ['after', 'caller'],
    'needs-review': ['after', 'caller'],
    'replay-diverged': ['never', 'caller'],
    'unknown-approval': ['never', 'caller'],
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
    'model-timeout': ['now', 'model'],
    'model-malformed': ['never', 'model'],
    'model-rejected': ['never', 'caller'],
    'model-unauthorized': ['never', 'caller'],
    'model-quota-spent': ['never', 'caller'],
    'model-missing': ['never', 'caller'],
    'unknown-model': ['never', 'caller'],
    'unknown-price': ['never', 'caller'],
    'unknown-provider': ['never', 'caller'],
    'credentials-missing': ['never', 'caller'],
    'credentials-mixed': ['never', 'caller'],
    'credentials-exposed': ['never', 'caller'],
    'config-malformed': ['never', 'caller'],
    'config-untrusted': ['never', 'caller'],
    'script-mismatch': ['never', 'caller'],
    'recording-missing': ['never', 'caller'],
    'missing-package': ['never', 'caller'],
    'missing-program': ['never', 'caller'],
    'tool-arguments': ['never', 'model'],
    'tool-result': ['never', 'tool'],
    'tool-failed': ['never', 'tool'],
    'mcp-unreachable': ['after', 'tool'],
    'unknown-sandbox': ['never', 'caller'],
    'placement-missing': ['never', 'caller'],
    'sandbox-unavailable': ['never', 'caller'],
    'sandbox-unsupported': ['never', 'caller'],
    'workspace-moved': ['never', 'caller'],
    'workspace-elsewhere': ['never', 'caller'],
    'sandbox-closed': ['never', 'caller'],
    'sandbox-failed': ['never', 'sandbox'],
    'path-outside': ['never', 'model'],
    'path-missing': ['never', 'model'],
    'path-kind': ['never', 'model'],
    'path-read-only': ['never', 'model'],
    'unknown-memory': ['never', 'caller'],
    'memory-missing': ['never', 'caller'],
    'memory-unsupported': ['never', 'caller'],
    'resource-refused': ['never', 'caller'],
    'workspace-too-big': ['never', 'caller'],
    'format-malformed': ['never', 'caller'],
    'format-newer': ['never', 'caller'],
    'bundle-altered': ['never', 'caller'],
  }
  for (const [code, [retry, blame]] of Object.entries(codes)) {
    const error = new RathError(code as ErrorCode, 'What happened.', { data: { line: 3 } })
    expect(error).toMatchObject({ name: 'RathError', code, retry, blame, data: { line: 3 } })
    expect(error).toBeInstanceOf(Error)
  }
})
