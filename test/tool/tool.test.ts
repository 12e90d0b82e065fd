import { type } from 'arktype'
import * as v from 'valibot'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { Session } from '../../src/session/session.ts'
import { FlowToolCall, toTool } from '../../src/tool/flow-tool-call.ts'
import { tool, toolTable } from '../../src/tool/tool.ts'
import { type ArgumentError, ToolError } from '../../src/tool/tool-error.ts'
import { refusal } from '../session/make.ts'
import { anyObject, outcomeOf, simple } from './make.ts'

const person = { name: 'greet', description: 'Greets.' }

test('arguments have the type of the schema, whichever library wrote it', async () => {
  const tools = [
    tool({
      ...person,
      input: z.object({ who: z.string(), times: z.number().default(2) }),
      run({ who, times }) {
        expectTypeOf(who).toEqualTypeOf<string>()
        expectTypeOf(times).toEqualTypeOf<number>()
        return `hi ${who} `.repeat(times)
      },
    }),
    tool({
      ...person,
      input: type({ who: 'string', times: 'number = 2' }),
      run({ who, times }) {
        expectTypeOf(times).toEqualTypeOf<number>()
        return `hi ${who} `.repeat(times)
      },
    }),
    tool({
      ...person,
      input: v.object({ who: v.string(), times: v.optional(v.number(), 2) }),
      parameters: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
      run({ who, times }) {
        expectTypeOf(times).toEqualTypeOf<number>()
        return `hi ${who} `.repeat(times)
      },
    }),
  ]
  for (const made of tools) {
    expect(await outcomeOf(made, { who: 'Ada' })).toEqual({ kind: 'value', value: 'hi Ada hi Ada ' })
    expect(made.parameters).toMatchObject({ type: 'object', properties: { who: { type: 'string' } } })
    expect(made.effect).toBe('external')
  }
})

test('a JSON Schema goes to the model untouched, and its arguments can be given a type', async () => {
  const input = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: { who: { type: 'string', 'x-note': 'kept' } },
    required: ['who'],
    additionalProperties: false,
  } as const
  const made = tool<{ who: string }>({ ...person, input, run: ({ who }) => ({ hello: who.length }) })
  expect(JSON.stringify(made.parameters)).toBe(JSON.stringify(input))
  expect(Object.isFrozen(made.parameters)).toBe(true)
  expect(await outcomeOf(made, { who: 'Ada' })).toEqual({ kind: 'value', value: { hello: 3 } })
})

test('every problem with the arguments is listed by its path, and the tool does not run', async () => {
  let ran = 0
  const run = () => ran++
  const shape = {
    type: 'object',
    properties: {
      rows: {
        type: 'array',
        items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      },
      mode: { enum: ['a', 'b'] },
      size: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    },
    required: ['name'],
    additionalProperties: false,
  } as const
  const args: Json = { rows: [{ n: 1.5 }, {}], mode: 'c', size: true, more: 1 }
  const written = await outcomeOf(tool({ ...person, input: shape, run }), args)
  expect(written).toMatchObject({ kind: 'error', error: 'invalid-arguments' })
  const paths = (outcome: typeof written) => {
    const { detail } = outcome as unknown as { detail: { problems: { path: string }[] } }
    return detail.problems.map(problem => problem.path).sort()
  }
  expect(paths(written)).toEqual([
    'arguments',
    'arguments.mode',
    'arguments.more',
    'arguments.rows[0].n',
    'arguments.rows[1]',
    'arguments.size',
  ])
  const standard = z.object({
    rows: z.array(z.object({ n: z.int() })),
    mode: z.enum(['a', 'b']),
    name: z.string(),
  })
  const checked = await outcomeOf(tool({ ...person, input: standard, run }), args)
  expect(paths(checked)).toEqual([
    'arguments.mode',
    'arguments.name',
    'arguments.rows[0].n',
    'arguments.rows[1].n',
  ])
  expect(ran).toBe(0)
})

test('parse rejects with every problem', async () => {
  const made = tool({ ...person, input: z.object({ a: z.string(), b: z.number() }), run: () => 1 })
  const error: ArgumentError = await made.parse({}).then(
    () => expect.unreachable(),
    reason => reason,
  )
  expect(error).toMatchObject({ code: 'tool-arguments', blame: 'model', failure: 'invalid-arguments' })
  expect(error.problems.map(problem => problem.path)).toEqual(['arguments.a', 'arguments.b'])
})

test('an output schema is held to, and its transformation counts', async () => {
  const output = z.object({ sum: z.number().transform(n => n * 2) })
  const fits = tool({ ...person, input: z.object({}), output, run: () => ({ sum: 2 }) })
  expect(await outcomeOf(fits)).toEqual({ kind: 'value', value: { sum: 4 } })
  // @ts-expect-error the result has the type of the output schema
  tool({ ...person, input: z.object({}), output, run: () => ({ sum: 'two' }) })
  const lies = tool({
    ...person,
    input: anyObject,
    output: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
    run: () => ({ sum: 'two' }),
  })
  expect(await outcomeOf(lies)).toMatchObject({
    error: 'unreadable-result',
    message: expect.stringContaining('result.sum'),
  })
})

test('a schema that cannot say what it looks like is refused with the way out', () => {
  const valibot = refusal(() => tool({ ...person, input: v.object({ a: v.string() }), run: () => 1 }))
  expect(valibot.message).toContain('toStandardJsonSchema')
  expect(valibot.message).toContain('parameters')
  const old = {
    '~standard': { version: 1, vendor: 'zod', validate: (value: unknown) => ({ value }) },
  } as never
  expect(refusal(() => tool({ ...person, input: old, run: () => 1 })).message).toContain('zod to 4.2')
  class ZodObject {
    _def = {}
  }
  const ancient = new ZodObject() as never
  expect(refusal(() => tool({ ...person, input: ancient, run: () => 1 })).message).toContain('zod to 4.2')
  const date = z.object({ at: z.date() })
  expect(refusal(() => tool({ ...person, input: date, run: () => 1 })).message).toContain('Date cannot be')
  // @ts-expect-error a tool takes an object
  expect(refusal(() => tool({ ...person, input: z.string(), run: () => 1 })).message).toContain('object')
})

test('the compiler finds a wrong option at that option, and knows the arguments', () => {
  const input = z.object({ path: z.string(), depth: z.number().default(1) })
  refusal(() =>
    tool({
      name: 'list',
      description: '',
      input,
      // @ts-expect-error there is no such effect
      effect: 'reads',
      run: () => '',
    }),
  )
  tool({
    name: 'list',
    description: '',
    input,
    resource: ({ depth }) => {
      expectTypeOf(depth).toEqualTypeOf<number | undefined>()
      return 'files'
    },
    run: args => expectTypeOf(args).toEqualTypeOf<{ path: string; depth: number }>(),
  })
  tool({
    name: 'list',
    description: '',
    input,
    // @ts-expect-error a word that is no option
    efect: 'read',
    run: () => '',
  })
  tool({
    name: 'list',
    description: '',
    input: { type: 'object' },
    run: args => expectTypeOf(args).toEqualTypeOf<JsonObject>(),
  })
  tool({
    name: 'list',
    description: '',
    input: { type: 'object' },
    run: ({ path }: { path: string }) => path,
  })
})

test('a schema that answers with a promise of its own kind is waited for', async () => {
  const later = { issues: [{ message: 'not today' }] }
  // biome-ignore lint/suspicious/noThenProperty: what another library calls a promise
  const validate = () => ({ then: (heard: (result: object) => void) => heard(later) })
  const input = { '~standard': { version: 1, vendor: 'own', validate } } as unknown as JsonObject
  const own = tool({ ...person, input, parameters: { type: 'object' }, run: () => expect.unreachable() })
  await expect(own.parse({ a: 1 })).rejects.toThrow('not today')
})

test('a JSON Schema with mistakes is refused with all of them', () => {
  const input = {
    type: 'object',
    properties: { a: { type: 'strin' }, b: { type: 'string', pattern: '(' }, c: { $ref: '#/$defs/no' } },
    required: 'a',
  } as const
  const { data } = refusal(() => tool({ ...person, input, run: () => 1 }))
  expect(data.paths).toEqual([
    'schema.properties.a.type',
    'schema.properties.b.pattern',
    'schema.required',
    'schema.properties.c.$ref',
  ])
  for (const wrong of [
    { $ref: 'https://example.com/elsewhere.json' },
    { $ref: '#nowhere' },
    { $ref: 5 },
    { $id: 'http://[' },
  ]) {
    const elsewhere = { type: 'object', properties: { a: wrong } }
    expect(() => tool({ ...person, input: elsewhere, run: () => 1 }), JSON.stringify(wrong)).toThrow('schema')
  }
  const recursive = {
    type: 'object',
    properties: { child: { $ref: '#' }, leaf: { $ref: '#/$defs/leaf' }, named: { $ref: '#leaf' } },
    $defs: { leaf: { type: 'string', $anchor: 'leaf' } },
  } as const
  expect(tool({ ...person, input: recursive, run: () => 1 }).parameters).toEqual(recursive)
})

test('a tool with a wrong outside is refused with every reason', () => {
  const wrong = { name: 'say hi', description: 1, input: anyObject, effect: 'none', timeout: 0, run: 1 }
  const { data } = refusal(() => tool(wrong as never))
  expect(data.paths).toEqual(['name', 'description', 'effect', 'timeout', 'run'])
  expect(refusal(() => tool({ ...person, name: 'x'.repeat(65), input: anyObject, run: () => 1 })).code).toBe(
    'invalid-argument',
  )
  expect(
    refusal(() => tool({ ...person, timeout: 2 ** 40, input: anyObject, run: () => 1 })).data.paths,
  ).toEqual(['timeout'])
})

test('two tools with one name are refused', () => {
  expect(refusal(() => toolTable([simple('a', () => 1), simple('a', () => 2)])).message).toContain('"a"')
})

class Shout extends FlowToolCall {
  readonly name = 'shout'
  override readonly description = 'Says it louder.'
  readonly parameters = {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
  } as const
  override readonly effect = 'pure'
  count = 0

  override resource() {
    return 'voice'
  }

  call(session: Session, { text }: { text: string }) {
    this.count++
    return `${text.toUpperCase()}! (${session.length})`
  }
}

test('the class form is a tool like any other', async () => {
  const shout = new Shout()
  const made = toTool(shout)
  expect(made).toMatchObject({ name: 'shout', effect: 'pure', description: 'Says it louder.' })
  expect(made.resource?.({})).toBe('voice')
  expect(await outcomeOf(made, { text: 'hey' })).toEqual({ kind: 'value', value: 'HEY! (1)' })
  expect(await outcomeOf(made, {})).toMatchObject({ error: 'invalid-arguments' })
  expect(shout.count).toBe(1)
  expect(toTool(made)).toBe(made)
})

test('a class that names neither effect nor description gets the careful defaults', () => {
  class Bare extends FlowToolCall {
    readonly name = 'bare'
    readonly parameters = z.object({ n: z.number() })
    call(_session: Session, { n }: { n: number }) {
      return n
    }
  }
  expect(toTool(new Bare())).toMatchObject({ effect: 'external', description: '' })
  class Wrong extends Bare {
    override readonly name = 'not a name' as never
  }
  expect(refusal(() => toTool(new Wrong())).message).toContain('Wrong')
})

test('a tool can word its own failure', async () => {
  const made = simple('buy', () => {
    throw new ToolError('threw', 'Sold out; try tomorrow.', { detail: { left: 0 } })
  })
  expect(await outcomeOf(made)).toEqual({
    kind: 'error',
    error: 'threw',
    message: 'Sold out; try tomorrow.',
    detail: { left: 0 },
  })
})
