import { oneForm, unspaced, wordsOf } from './words.ts'

/** What a question looks for, before any store is asked. */
export interface Question {
  /** Each word once. */
  readonly words: readonly QuestionWord[]
  /** The words alone in their order, for whoever looks at neighbours. */
  readonly sequence: readonly string[]
  readonly parts: readonly QuestionPart[]
}

interface QuestionWord {
  readonly word: string
  /** What it counts for in the ranking, of a content word. */
  readonly rank: number
}

/**
 * A piece of the question that an entry has or lacks: a word, or a character of a script without spaces, which an entry has when it has one of the two pairs
 * around it. Half of the pairs of a question cross from one word into the next and stand in no entry, so none is a part by itself.
 */
interface QuestionPart {
  /** What it counts for when asking how much of the question an entry has, of a content word. */
  readonly value: number
  /** Not in a question that has characters of such a script: what of them is content, nobody can tell. */
  readonly isContent: boolean
  /** Places among the words, and how much of the part each is. */
  readonly by: readonly Having[]
}

interface Having {
  readonly at: number
  readonly share: number
}

/** A word of a question in one store. */
export interface Term {
  readonly word: string
  /** Its rarity, as BM25 has it. */
  readonly weight: number
  /** What it adds to how much of the question is covered, for the order of hits. */
  readonly mass: number
}

/** A part of a question in one store: of all its parts, as much as `mass`. */
export interface WeighedPart {
  readonly mass: number
  readonly isContent: boolean
  readonly by: readonly Having[]
}

/** English words of asking, everyday words and content words. Everyday words tell entries apart as well as others, but to share one says little. */
const asks = { rank: 0.5, value: 0.1 }
const everyday = { rank: 1, value: 0.3 }
const content = { rank: 1, value: 1 }
/** Characters of asking and of grammar. */
const grammar = { rank: 0.1, value: 0.1 }
/** What a character says by itself where its pairs are lacking. */
const alone = 0.15
/** An entry has a content word from so much on: a far neighbour that has it is not enough. */
const had = 0.3
/** What is left of a fit where an entry has none of the question's content words. */
const besides = 0.7

/**
 * What a part of a question weighs in a store. Rarity counts on top of `base`, and as long as a store is small a word's rarity there is mostly chance: `entries`
 * more are imagined in which it is `rarity`. A word that no entry has counts for less than one that some entry has, whatever the store's size: nobody can tell whether the store
 * knows nothing of it or says it in another word. Chosen on LoCoMo 1–3 and the first half of Chinese XQuAD, in stores of 1 to 700 entries.
 */
const prior = { base: 5, entries: 40, rarity: 8, unknown: 6 }

export function questionOf(text: string): Question {
  const { terms, sequence } = wordsOf(text)
  const words = new Map([...new Set(terms)].map((word, at) => [word, { word, at, rank: 0 }]))
  const parts: QuestionPart[] = []
  const use = (word: string, rank: number): Having[] => {
    const found = words.get(word)
    if (found === undefined) return []
    found.rank = Math.max(found.rank, rank)
    return [{ at: found.at, share: 1 }]
  }
  for (const [run] of oneForm(text).matchAll(unspaced)) {
    const characters = [...run]
    const kinds = kindsOf(characters)
    const pairs = characters.slice(1).map((second, i) => {
      const [before, behind] = [kinds[i] as Kind, kinds[i + 1] as Kind]
      return use(`${characters[i]}${second}`, (before.rank + behind.rank) / 2)
    })
    for (const [i, character] of characters.entries()) {
      const { rank, value } = kinds[i] as Kind
      const own = use(character, rank)
      const around = [...(pairs[i - 1] ?? []), ...(pairs[i] ?? [])]
      const by = around.length === 0 ? own : [...own.map(({ at }) => ({ at, share: alone })), ...around]
      // Two characters are about a word.
      parts.push({ value: value / 2, isContent: false, by })
    }
  }
  const { asking, common } = lists()
  const isSpelled = parts.length > 0
  for (const one of words.values()) {
    if (one.rank > 0) continue
    const { rank, value } = asking.has(one.word) ? asks : common.has(one.word) ? everyday : content
    one.rank = rank
    parts.push({ value, isContent: !isSpelled && value === content.value, by: [{ at: one.at, share: 1 }] })
  }
  return { words: [...words.values()], sequence, parts }
}

/** A question in a store of so many entries; `have` says how many of them have the word at a place. */
export function weigh(
  { words, parts }: Question,
  entries: number,
  have: (at: number) => number,
): { readonly terms: readonly Term[]; readonly parts: readonly WeighedPart[] } {
  const live = Math.max(1, entries)
  const counts = words.map((_, at) => Math.min(have(at), live))
  const rarities = counts.map(count => Math.log(1 + (live - count + 0.5) / (count + 0.5)))
  const terms = words.map(({ word, rank }, at) => {
    const weight = rank * (rarities[at] as number)
    return { word, weight, mass: 2 * rank + weight }
  })
  const masses = parts.map(({ value, by }) => {
    const known = by.filter(({ at, share }) => share === 1 && (counts[at] as number) > 0)
    if (known.length === 0) return value * prior.unknown
    const rarity = known.reduce((sum, { at }) => sum + (rarities[at] as number), 0) / known.length
    return value * (prior.base + (live * rarity + prior.entries * prior.rarity) / (live + prior.entries))
  })
  // A question of nothing but words of asking does not become one about them.
  const all = Math.max(
    prior.unknown,
    masses.reduce((sum, mass) => sum + mass, 0),
  )
  return {
    terms,
    parts: parts.map(({ value: _, ...part }, i) => ({ ...part, mass: (masses[i] as number) / all })),
  }
}

/** How much of a question an entry has, from 0 to 1; `felt` says for each word how clearly the entry and its neighbours have it. */
export function fitOf(parts: readonly WeighedPart[], felt: ArrayLike<number>): number {
  let fit = 0
  let asked = false
  let hasContent = false
  for (const { mass, isContent, by } of parts) {
    let best = 0
    for (const { at, share } of by) best = Math.max(best, share * (felt[at] as number))
    fit += mass * best
    if (!isContent) continue
    asked = true
    if (best > had) hasContent = true
  }
  return asked && !hasContent ? fit * besides : fit
}

interface Kind {
  readonly rank: number
  readonly value: number
}

function kindsOf(characters: readonly string[]): Kind[] {
  const kinds: Kind[] = characters.map(() => content)
  for (let i = 0; i < characters.length; i++) {
    const phrase = phraseAt(characters, i)
    if (phrase === undefined) continue
    for (let k = 0; k < phrase.length; k++) kinds[i + k] = phrase.kind
    i += phrase.length - 1
  }
  return kinds
}

const longestPhrase = 4

function phraseAt(characters: readonly string[], i: number): { length: number; kind: Kind } | undefined {
  for (let length = Math.min(longestPhrase, characters.length - i); length > 0; length--) {
    const phrase = characters.slice(i, i + length).join('')
    if (lists().particles.has(phrase)) return { length, kind: grammar }
    if (lists().usual.has(phrase)) return { length, kind: everyday }
  }
  return undefined
}

interface Lists {
  readonly asking: ReadonlySet<string>
  readonly common: ReadonlySet<string>
  readonly particles: ReadonlySet<string>
  readonly usual: ReadonlySet<string>
}

let made: Lists | undefined
/** Stemmed once, when the first question is asked. */
function lists(): Lists {
  made ??= {
    asking: new Set(wordsOf(askingWords).terms),
    common: new Set(wordsOf(commonWords).terms),
    particles: new Set(oneForm(particlePhrases).split(/\s+/)),
    usual: new Set(oneForm(usualPhrases).split(/\s+/)),
  }
  return made
}

/** English words that say what is wanted, not what about; and the question words of some other languages that are no English words. */
const askingWords = `please tell know want need like ask answer question explain describe show give find help remember remind recall mention say talk
  speak think mean happen use get go make let put come take try look see kind type sort thing something anything someone anyone everything way many much
  often long ever never still yet always usually really actually currently recently lately exactly maybe perhaps thank thanks hello hi hey ok okay yes one
  first last next new old good great able possible due various different certain name call information info detail instruction suggest recommend according
  regarding several another every either else main quick quickly sure sorry guess wonder
  wann wo wer wie warum welche welcher welches wieviel bitte quand comment pourquoi quel quelle quels quelles combien cuando donde quien como cual cuanto`

/** Words that stand in texts about anything, so that sharing one says little, also where a small store has it once. */
const commonWords = `time year month week day today tomorrow yesterday tonight morning afternoon evening night hour minute second moment date weekend monday
  tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december spring summer autumn
  winter people person man woman child kid baby boy girl guy family friend parent mother mom father dad son daughter brother sister husband wife home house
  room door window wall floor car road city town country world place area street school class course student teacher work worker job company business office
  team group member meeting project plan idea thought problem issue trouble case reason result point part piece side end start begin stop finish continue
  change move turn run walk leave stay wait keep hold carry bring send receive buy sell pay cost price money dollar number amount count half lot life live
  die love hate feel feeling hope believe understand learn teach read write book story word letter call phone message email mail hear listen watch play
  game music song movie picture photo video food eat drink water coffee tea breakfast dinner lunch health body hand head eye face heart hair foot sleep sit
  stand lie fall open close shut free full empty hard soft easy simple difficult important special real true false big small large little high low short
  tall early late soon fast slow right left wrong same similar whole single double near far top bottom middle front back inside outside strong weak hot
  warm cold cool light dark heavy clean dirty dry wet young nice fine bad poor rich cheap expensive happy sad angry glad afraid tired busy ready favorite
  favourite prefer choose pick decide set add check test fix build create support share join meet visit travel trip event party activity interest hobby
  experience opportunity goal dream challenge success future past history white black red blue green yellow color colour size form shape system service
  program programming language line file data list page level rate power order state government law public private news report study research fact example
  cause effect relationship career community spend enjoy become grow lead follow inspire motivate attend participate recent near local general common
  normal regular own personal human social political local national international capital center centre process product market industry price value
  increase decrease rise drop raise reduce improve allow require include contain provide offer serve expect appear seem remain return reach pass cut break
  hit win lose catch throw push pull draw drive ride fly travel cross enter arrive record note sign mark cover fill save lose miss forget agree accept refuse
  prepare manage control handle deal act action step role rule policy term condition situation position chance choice decision difference matter subject
  topic view opinion sense mind reason term quality kind sound voice air fire earth land sea river tree animal dog cat bird`

/** Chinese words of asking and of grammar, and a few Japanese ones. */
const particlePhrases = `什么时候 什么样 为什么 怎么样 怎样 怎么 如何 什么 是什么 哪里 哪儿 哪些 哪个 哪一 哪种 哪位 哪年 哪 谁 多少 多久 多长 多大 多高 多远
  几个 几次 几点 几 何时 何地 何处 何种 何 是否 有没有 是不是 能不能 可不可以 能否 可否 吗 呢 吧 啊 呀 的 了 着 过 地 得 在 是 有 和 与 及 或 被 把 对
  对于 关于 由 从 到 向 于 为 以 因为 所以 而 但 但是 也 都 就 才 又 再 还 很 最 更 太 会 能 可以 可能 应该 要 想 需要 请 请问 告诉 知道 一个 一种 一些 这个
  那个 这些 那些 这 那 其 之 所 时候 我 你 他 她 它 我们 你们 他们 您 自己 以及 并 并且 个 种 位 称为 叫做 叫 名字 被称 进行 使用
  いつ どこ だれ なに なぜ どう どの どれ どんな いくつ いくら ですか ますか です ます でした ました を の は が`

/** Chinese words that stand in texts about anything. */
const usualPhrases = `时间 年 月 日 天 人 人们 人数 人口 国家 地方 地区 地点 城市 世界 社会 公司 工作 问题 原因 结果 情况 关系 作用 目的 目标 计划 项目 活动 会议 组织 机构 部门
  成员 团队 朋友 家庭 家人 父母 孩子 男人 女人 先生 女士 学校 学生 老师 大学 名称 数量 数字 数据 大小 高度 长度 面积 距离 速度 价格 费用 平均 总数 比例 今天 明天 昨天
  早上 上午 中午 下午 晚上 凌晨 周末 星期 每天 每年 每月 每周 去年 今年 明年 年代 世纪 现在 目前 过去 未来 当时 同时 之后 之前 以后 以前 之间 期间 其中 其他 另外 所有
  全部 许多 很多 大部分 少数 部分 一般 通常 经常 特别 非常 比较 更多 主要 重要 不同 相同 容易 困难 简单 复杂 第一 第二 第三 首次 最大 最小 最高 最低 最多 最近 最后
  最初 最早 东部 西部 南部 北部 中心 中央 附近 位于 属于 包括 包含 具有 拥有 存在 出现 发生 产生 形成 导致 引起 造成 影响 提供 支持 帮助 允许 要求 决定 选择 希望 喜欢
  觉得 认为 成为 看到 听到 发现 得到 获得 收到 开始 结束 停止 继续 完成 建立 成立 创建 参加 加入 离开 到达 回来 经过 通过 根据 按照 作为 代表 表示 说明 描述 解释 定义
  意思 增加 减少 提高 降低 变化 改变 方式 方法 方面 类型 种类 过程 系统 技术 研究 历史 文化 政治 经济 政府 法律 国际 美国 中国 没有 中 上 下 里 内 外 大 小 新 不 名 次`
