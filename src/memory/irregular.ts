/** English forms that no rule leads back to their word, each list led by the word itself. */
const forms = `
be am is are was were been being|become became|begin began begun|bite bit bitten|blow blew blown|break broke broken
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|cost costs|deal dealt
dig dug|do did done does|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen
feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|give gave given|go went gone|grow grew grown|hang hung|have had has|hear heard|hide hid hidden|hold held
keep kept|know knew known|lay laid|lead led|learn learnt|leave left|lend lent|lie lain|light lit|lose lost|make made
mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk
sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen
stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn
tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept|win won
wind wound|write wrote written|withdraw withdrew withdrawn|foresee foresaw foreseen|overcome overcame|undergo underwent undergone
child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese|life lives|wife wives|knife knives
leaf leaves|half halves|shelf shelves|wolf wolves|index indices|criterion criteria|datum data|medium media
good better best|bad worse worst|far further furthest|little less least
`

/** From a form to its word. */
export const irregular: ReadonlyMap<string, string> = new Map(
  forms
    .split(/[|\n]/)
    .map(line => line.trim().split(' '))
    .flatMap(([word = '', ...others]) => others.map(other => [other, word] as const)),
)

/** Words that say how something is said, not what: they carry no memory, and every entry has them. */
export const stopWords: ReadonlySet<string> = new Set(
  `a an the and or but nor so if then than that this these those there here
  i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its itself
  they them their theirs themselves who whom whose which what when where why how
  am is are was were be been being do does did doing done have has had having will would shall should can could may might must
  ll ve re don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
  of at by for with about against between into through during before after above below to from up down in out on off over under
  again further once all any both each few more most other some such no not only own same too very just also now
  as because until while s t d m o y`.split(/\s+/),
)
