import { visible } from '../visible.ts'

/** HTML that was written here. Everything else that goes into a page is text, and is escaped on its way. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Content = Markup | string | number | false | undefined | null | readonly Content[]

/** A piece of a page: what stands in the template is markup, what is put into it is text, unless it is markup, too. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Markup {
  let text = strings[0] as string
  for (const [i, value] of values.entries()) text += written(value) + strings[i + 1]
  return new Markup(text)
}

function written(value: Content): string {
  if (value instanceof Markup) return value.text
  if (typeof value === 'string') return escaped(value)
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value)) return value.map(written).join('')
  return ''
}

/** For text between tags and in quoted attributes. */
function escaped(text: string): string {
  return visible(text).replace(/[&<>"']/g, character => entities[character] as string)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
