import type { Asked, Call, Said, Schema } from '../support/chat-server.ts'

/**
 * A model that does what it is told to the letter, for programs of which nobody knows what they ask: it runs the commands and makes the edits
 * that a prompt spells out, calls a tool once otherwise, and gives data of the shape that is asked for.
 */
export function obey({ messages, tools = [], response_format }: Asked): Said {
  const said = messages.filter(({ role, content }) => role === 'assistant' && content).length
  const hasLooked = messages.at(-1)?.role === 'tool'
  const told = textOf(messages.findLast(({ role }) => role === 'user')?.content)
  if (tools.length > 0 && !hasLooked) {
    const isCart = JSON.stringify(messages).includes('# An empty cart throws')
    const spelled = tools.flatMap(({ function: { name } }) => callsIn(isCart ? cart : told, name))
    if (spelled.length > 0) return spelled
    const { name, parameters } = (tools[0] as (typeof tools)[0]).function
    return [{ name, args: sample(parameters, said) as object }]
  }
  const schema = response_format?.json_schema?.schema
  return schema ? JSON.stringify(sample(schema, said)) : 'It is done, and all is well.'
}

/** The issue of the maintainer's sample, as somebody who understood it would put it. */
const cart = 'replace "a + b)" in total.js by "a + b, 0)"'

/** The calls of a tool that a prompt spells out. */
function callsIn(told: string, name: string): Call[] {
  switch (name) {
    case 'run_shell_command':
      return [...told.matchAll(/`([^`]+)`/g)].map(([, cmd = '']) => ({ name, args: { cmd } }))
    case 'edit_workspace_file': {
      const edits = told.matchAll(/replace ("(?:\\.|[^"])+") in (\S+) by ("(?:\\.|[^"])+")/g)
      return [...edits].map(([, old = '', path, by = '']) => ({
        name,
        args: { path, old: JSON.parse(old), new: JSON.parse(by) },
      }))
    }
    case 'pay': {
      const bills = JSON.parse(/\[.*\]/.exec(told)?.[0] ?? '[]') as object[]
      return bills.map(args => ({ name, args }))
    }
    default:
      return []
  }
}

/** A value that a schema allows. Of several words it takes the first, and the last once much has been said. */
function sample(schema: Schema, said: number): unknown {
  const { type, properties = {}, enum: words, const: word, anyOf, items, minimum = 1, minItems = 1 } = schema
  if (word !== undefined) return word
  if (Array.isArray(words)) return words.at(said < 4 ? 0 : -1)
  if (Array.isArray(anyOf)) return sample(anyOf.at(-1), said)
  const kind = Array.isArray(type) ? type.at(-1) : type
  if (kind === 'object') {
    const fields = Object.entries(properties as Record<string, Schema>)
    return Object.fromEntries(fields.map(([name, field]) => [name, sample(field, said)]))
  }
  if (kind === 'array')
    return Array.from({ length: Number(minItems) }, () => sample((items ?? {}) as Schema, said))
  if (kind === 'number' || kind === 'integer') return minimum
  return kind === 'boolean' ? true : kind === 'null' ? null : 'lamp'
}

function textOf(content: unknown): string {
  if (typeof content === 'string' || content === undefined) return content ?? ''
  return (content as { text?: string }[]).map(({ text = '' }) => text).join('\n')
}
