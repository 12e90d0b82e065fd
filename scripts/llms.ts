import type { Group } from '../docs/.vitepress/pages.ts'

const head = `# OpenRath

> A TypeScript runtime for many agents working over many sessions. The Session is the value that flows between them: immutable,
> content-addressed, forked and merged like a git history. An agent takes a session and returns a new one; files follow the session;
> every effect is journalled, so that runs replay, resume and can be asked who did what.

Install with \`npm install openrath\`; Node 22.18 or newer. Every program in these pages runs without a key and printed the output shown.
`

/** The docs as a list of links for language models: https://llmstxt.org. */
export function llms(groups: readonly Group[]): string {
  const lists = groups.map(({ text, pages }) => {
    const links = pages.map(
      ({ title, path, summary }) => `- [${title}](${path})${summary && `: ${cut(summary)}`}`,
    )
    return `## ${text}\n\n${links.join('\n')}\n`
  })
  return [head, ...lists].join('\n')
}

/** The same with every page in full, except what is generated from the types. */
export function llmsFull(groups: readonly Group[]): string {
  const pages = groups.flatMap(group => group.pages).filter(({ path }) => !path.startsWith('api/'))
  return [head, ...pages.map(({ path, markdown }) => `<!-- ${path} -->\n\n${markdown.trim()}\n`)].join('\n')
}

/** A summary's first sentences, up to about 200 characters. */
function cut(summary: string): string {
  if (summary.length <= 200) return summary
  const sentences = summary.slice(0, 200).match(/^.*[.!?:](?= )/s)?.[0]
  return sentences ?? `${summary.slice(0, 200).replace(/\s+\S*$/, '')} …`
}
