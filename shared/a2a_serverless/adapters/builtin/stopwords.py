"""Words that say little about what a text is about: they never name a section and never tie two sentences together."""

from __future__ import annotations

from typing import Final


def listed(words: str) -> list[str]:
    """The words in a text of words and white space."""
    return words.split()


ENGLISH: Final = frozenset(
    listed("""
    a able about above across actually add added adding adds after again against ago all allow allowed allows
    almost along already also although always am among an and announce announced another answer answered
    answers any anybody anyone anything anyway anywhere apart appear appeared appears applied applies apply
    april are aren't around arrive arrived as ask asked asks at ate august avoid avoided avoids away back base
    based be became because become becomes been before began begin begins behind being believe believed
    believes belong belongs below beside besides best better between beyond big billion bit both bottom bought
    bring brings broke broken brought built but by call called calls came can can't cannot carried carries
    carry case caught cause caused causes centuries century certain change changed changes changing check
    checked checks choose chooses chose chosen clear come comes coming common connect connected connects
    consider considered considers contain contains continue continued continues cost could couldn't counts
    covered covers create created creates creating cut day days dealt decade decades december decide decided
    decides define defined defines degree degrees deliver delivered depend depends describe described describes
    develop developed did didn't different do does doesn't doing don't done down dr drank drawn drew driven
    drop dropped drove dug during e.g each early easily easy eaten eight either else enable enables end ended
    ends enough ensure ensures enter entered especially etc even evening ever every everybody everyone
    everything everywhere example examples except exist existed exists expect expected expects explain
    explained explains fact fallen far feared february feel feet fell felt few fifty fill filled finally find
    finds finish finished first five fix fixed fixes flew flown follow followed following follows foot for
    forgot former forth forty fought found four free friday from front full further gain gained gains gave get
    gets getting give given gives giving go goes going gone good got great grew grow grown had hadn't half
    handle handles happen happened happens hard hardly has hasn't have haven't having he he's heard held hello
    help helps hence her here here's hers herself hey hi hid high him himself his hit hold holds hope hoped
    hour hours how however hundred hundreds hung hurt i i'd i'll i'm i've i.e idea identified identify if
    improve improved improves in inch inches include included includes including increase increased increases
    indeed indicate indicates instead into introduce introduced involve involved involves is isn't it it's its
    itself january join joined july june just keep keeps kept kill killed kilometre kilometres kind km knew
    know known knows laid large last late later latter lay lead leads learn learned learns least leave leaves
    led left lent less let let's like liked likely listen lit little live lived lives long look looked looks
    lose lost lot love loved low made main mainly maintain make makes making man manage managed many march
    matches may maybe me mean means meant meanwhile measured meet meets men mention mentioned mentions met
    meter meters metre metres middle might mile miles million millions mine minute minutes miss missed monday
    month months more moreover morning most mostly move moved moves mr mrs ms much must my myself named namely
    near nearly need needed needs neither never nevertheless new next nine no nobody none nor not note notes
    nothing november now nowhere number obtain obtained occur occurred occurs october of off offer offers often
    oh ok okay old on once one one's ones only onto open opened opens or other others otherwise our ours
    ourselves out over own owned paid part particular pass passed people per percent perhaps person pick picked
    place play played please possible postponed prepare prepared prevent prevented prevents produce produced
    produces prof prove proved provide provided provides pull pulled push pushed put puts quickly quite raise
    raised ran rather reach reached reaches read reading ready really reason receive received receives
    recognise recognised recognize recognized reduce reduced reduces refer refers reload remain remains
    remember remembered remove removed replace replaced replaces reported represent represents require required
    requires respond rest result return returned returns right risen rode rose run running runs said same sang
    sank saturday save saved saves saw say saying says second seconds see seek seem seemed seems seen select
    selected send sends sense sent separate separated september serve served serves set sets seven several
    shall share shared shares she she's shook shot should shouldn't show showed shown shows side simple simply
    since single six sixty slept small so sold solve solved solves some somebody somehow someone something
    sometimes somewhere soon sorry sort sought speak speaks specified specifies specify spend spends spent
    spoke spoken spread st stand stands start started starts stay stays still stole stood stop stopped stops
    stored stores struck such suggest suggested suggests sunday suppose supposed sure swam take taken takes
    taking talk talked talks taught tell tells ten tend tends than thank thanks that that's the their theirs
    them themselves then there there's thereby therefore these they they're they've thing things think third
    thirty this those though thousand thousands three threw through throughout thursday thus time times to
    today together told ton tonne tonnes tons too took top toward towards treat treated tried tries true try
    tuesday turn turned turns twenty two type under understand understood unless until up upon us use used
    useful uses using usually various very via visit visited vs wait walk walked want wanted wants was wasn't
    watch watched way ways we we'd we'll we're we've wednesday week weeks well went were weren't what what's
    whatever when whenever where whereas wherever whether which while who who's whoever whole whom whose why
    will win wins wish with within without woman women won won't wore work worked works worn worry worth would
    wouldn't wound write writes writing written wrong wrote year years yes yet you you'd you'll you're you've
    your yours yourself yourselves
    """)
)

# Characters that are words of their own nearly everywhere: no phrase goes across them.
HAN_CUTS: Final = frozenset("的了是在和与或等这那其被把将也就都而但很吗呢吧啊呀么你我他她它们")

# Characters that rarely begin or end the name of a subject, though they stand inside many (智能体, 不可变性).
HAN_EDGES: Final = frozenset(
    "能会可要应不无有没从到由对为以于向往当每各某该此个种些一二三四五六七八九十百千万两几上下里中内外前后时年月日着过得地来去说做"
    "用好多少大小新旧只未均令请即仅至自且却便才已曾正刚并则若又再还让使给跟比更最越虽因所之及"
)

# Common words that are no subject: cut out before phrases are counted, longer ones first.
HAN_WORDS: Final = tuple(
    sorted(
        listed("""
    可以 以及 例如 通常 因此 所以 如果 由于 通过 根据 关于 对于 有关 进行 使用 包括 包含 具有 需要 能够 可能
    应该 必须 应当 不会 不能 不应 不是 没有 任何 所有 每个 每条 每次 一个 一种 一些 一条 一次 一旦 一般 某个
    某些 多个 许多 各种 不同 相同 相关 其他 其它 以下 以上 之前 之后 之间 同时 然后 随后 首先 其次 最后 此外
    另外 然而 不过 虽然 尽管 即使 只要 只有 除非 无论 无法 何时 如何 什么 为什么 怎么 怎样 哪些 哪个 自己 本身
    非常 十分 特别 尤其 已经 正在 曾经 仍然 始终 总是 经常 有时 现在 今天 目前 当前 当时 时候 以来 直到 从而
    而且 并且 或者 还是 就是 也是 都是 这是 那是 作为 成为 变成 得到 提供 支持 允许 表示 说明 确保 帮助 使得
    导致 引起 产生 带来 属于 来自 位于 存在 出现 发生 开始 结束 继续 保持 采用 利用 用于 适用 适合 有助于
    意味着 称为 叫做 认为 觉得 知道 看到 发现 要求 希望 第一 第二 第三 很多 大量 主要 重要 简单 复杂 基本 整个
    部分 方面 情况 问题 方式 方法 这些 那些 这个 那个 这样 那样 这种 那种 我们 他们 它们 她们 你们 人们 大家
    只能 只是 更多 更加 尚未 即可 再次 立即 直接 明确 建议 每一 有些 有的 不仅 不但 甚至 比如 为了 除了 随着
    按照 经过 其中 其实 当然 显然 似乎 几乎 大约 左右 至少 最多 至今 从此 于是 何况 况且 否则 不再 不必 不得
    不用 还有 只好
    """),
        key=lambda word: (-len(word), word),
    )
)
