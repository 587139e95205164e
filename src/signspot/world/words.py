"""The English words of the world: plain ones by kind, and two-word names made of them.

The list was written for this world, so it is the same everywhere and belongs to nobody else. About a thousand plain
words (lemmas) stand before thousands of compounds such as "school-teacher": the frequent words of a language are short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from signspot.domain.words import Word, normalise
from signspot.errors import InputError

_PEOPLE = """actor aunt baby baker boss boy brother builder butcher captain child cook cousin customer dancer daughter
dentist doctor driver expert family farmer father friend gardener girl grandmother guest guide hero hunter judge king
lawyer leader manager mayor minister mother neighbour nurse officer owner painter parent patient pilot player poet
president prince prisoner queen reporter sailor scientist secretary singer sister soldier son student teacher tourist
twin uncle visitor waiter winner worker writer"""
_PLACES = """airport bank bathroom beach bedroom border bridge castle cave cellar church cinema city college corner
country court desert factory farm field forest garden gate hall harbour hill home hospital hotel house island kitchen
lake library market meadow mountain museum office palace park path playground pond prison pub restaurant river road
roof school shop stadium station street studio theatre tower town tunnel valley village yard zoo"""
_THINGS = """bag ball basket bed bell belt bicycle blanket boat book bottle bowl box brush bucket bus button camera
candle car card chair clock coat computer cup curtain desk door drawer dress drum engine fence flag fork glove guitar
hammer hat helmet jacket jar key kettle knife ladder lamp letter lock machine map mirror money needle newspaper page
parcel pencil piano picture pillow pipe plane plate pocket pot present prize radio ring rope sail saw scarf ship shirt
shoe shovel sock sofa spoon stamp suitcase sword table telephone television tent ticket towel toy train tray trousers
truck umbrella wallet watch wheel window"""
_STUFF = """brick cardboard clay coal copper cotton diamond glass gold iron leather metal paper plastic rubber sand
silk silver steel stone wood wool"""
_FOOD = """apple bacon banana bean beer berry biscuit bread butter cabbage cake carrot cheese cherry chicken chocolate
coffee cream egg fish flour fruit garlic grape ham honey jam juice lemon lunch meal meat melon milk mushroom nut onion
orange pasta pea peach pear pepper pie pizza plum potato pudding rice salad salt sandwich sauce sausage soup sugar tea
tomato vegetable wine"""
_ANIMALS = """ant bear bee bird bull butterfly camel cat cow crab crocodile dog donkey dragon duck eagle elephant fox
frog giraffe goat hen horse insect kitten lamb lion monkey owl parrot pig pigeon puppy rabbit rat shark sheep snail
snake spider squirrel swan tiger turtle whale worm zebra"""
_BODY = """ankle arm beard blood bone brain cheek chest chin ear elbow eye face finger hair hand head heart knee leg
lip lung mouth muscle neck nose shoulder skin stomach thumb toe tongue tooth wrist"""
_NATURE = """branch cloud coast earth fire flood flower fog grass ice lightning moon ocean plant rain rainbow rock
root sea seed shadow sky smoke snow star storm sun thunder tree water wave weather wind"""
_TIMES = """autumn birthday century christmas easter evening friday holiday hour minute monday month morning night
saturday season second spring summer sunday thursday tuesday wednesday week weekend winter year"""
_DOINGS = """accident adventure art ballet battle business ceremony chess competition concert conversation course
crime discussion exam exercise experiment festival football funeral game golf history hobby interview job journey
language lesson magic marriage mathematics medicine meeting music opera party performance poetry politics project
protest race rugby science show speech sport story strike surgery swimming tennis test tour trade traffic war
wedding"""
_IDEAS = """accent advantage advice age amount anger army attention attitude average beauty behaviour belief benefit
bill budget career cause chance character choice circle colour comfort community company confidence connection culture
damage danger deaf debate decision degree detail difference disease doubt dream duty economy edge education effort
election emergency emotion energy environment error evidence example experience fact fear feeling flight freedom fuel
fun future goal government group growth guilt habit happiness health height hope humour idea identity importance
industry information injury insurance interest invention joke joy justice kind knowledge law level limit list luck map
mark memory message method middle mind mistake mood name nation nature news noise number opinion opportunity order
pain parliament part passion past peace pension percentage period permission plan population position poverty power
pressure price pride problem process product profit progress promise purpose quality quantity question queue reason
recipe religion rent report respect result risk role row rule safety salary secret sense service shape shock sign
silence situation size skill smell society song sound space speed spirit square stage strength stress style subject
success support surprise system talent task taste tax technology temperature theory topic trouble trust truth vaccine
value victory view violence virus voice vote wage wealth weight wish word world"""
_VERBS = """accept add admire admit agree allow announce answer appear apologise argue arrange arrive ask attack avoid
bake beg begin believe belong blame boil borrow bounce breathe bring bury buy calculate call care carry catch
celebrate change chase choose clap clean climb close collect communicate compare complain contain continue copy count
cough crash create cry dance decide decorate defend deliver deny describe destroy dig disappear disappoint discover
divide drag dream dress drink drop earn eat employ encourage enjoy enter escape examine expect explain explode fail
fetch fight fill finish float fold follow forbid force forget forgive freeze frighten gather give grab greet grow
guess happen hate heal help hide hire hurry identify ignore imagine improve include increase inform insult introduce
invent invite join jump kick kill kiss kneel knit knock know laugh learn lend lift listen live look lose love marry
measure mend move need obey offer open paint park pay persuade phone point pour practise pray predict prepare pretend
prevent produce protect prove provide publish pull punish push reach realise receive recognise recommend reduce refuse
relax remember remove rent repair repeat replace rescue return ride rush save scream search sell send separate serve
share shave shout show sing sit sleep smile sneeze solve speak spell stare start steal stop stretch study suffer
suggest surround survive suspect swallow swim talk teach tell think throw touch translate travel try type understand
use vanish visit wait walk want warn wash waste welcome whisper win wipe wonder work worry wrap write yawn"""
_ADJECTIVES = """afraid alone ancient angry annoyed awful bad beautiful big bitter black blind blue boring brave
bright brown busy calm careful cheap clever cold comfortable common confused cool cruel curious dangerous dark dead
deep delicious different difficult dirty dry early easy embarrassed empty equal excited expensive famous fast fat
favourite flat foreign fragile free fresh friendly full funny gentle glad good great green grey guilty happy hard
heavy high honest horrible hot huge hungry important impossible innocent jealous keen kind large late lazy lonely long
loud lucky mad modern narrow nasty natural nervous new nice normal old perfect pink polite poor popular
possible pregnant private proud public purple quick quiet ready real red responsible rich rough round rude sad safe
serious sharp short shy sick silly simple slim slow small smart smooth soft sour special strange strict strong
stubborn stupid suitable sweet tall terrible thick thin thirsty tidy tired tiny true ugly unfair useful useless
violent warm weak wet white wide wild wise wrong yellow young"""

_NOUNS = (_PEOPLE, _PLACES, _THINGS, _STUFF, _FOOD, _ANIMALS, _BODY, _NATURE, _TIMES, _DOINGS, _IDEAS)

# Which kinds make a two-word name: the first describes the second.
_PAIRS = (
    (_PLACES, _PEOPLE), (_STUFF, _THINGS), (_FOOD, _THINGS), (_ANIMALS, _PLACES), (_TIMES, _DOINGS), (_DOINGS, _PEOPLE),
    (_NATURE, _PLACES), (_FOOD, _PEOPLE), (_DOINGS, _THINGS), (_PLACES, _THINGS),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lemma:
    """A word of the world and what a sentence may do with it."""

    word: Word
    kind: str  # noun, verb, adjective

    @property
    def is_compound(self) -> bool:
        """Whether it joins two plain words."""
        return "-" in self.word


def plain_lemmas() -> tuple[Lemma, ...]:
    """All plain words, the kinds mixed; a word of two kinds counts as the first."""
    kinds = {"adjective": _ADJECTIVES.split(), "noun": " ".join(_NOUNS).split(), "verb": _VERBS.split()}
    found: dict[Word, Lemma] = {}
    for kind, words in kinds.items():
        for word in words:
            found.setdefault(normalise(word), Lemma(normalise(word), kind))
    return tuple(found.values())


def compound_lemmas() -> Iterator[Lemma]:
    """Two-word names, the pairs of kinds in turn."""
    columns = ([f"{a}-{b}" for a in first.split() for b in second.split() if a != b] for first, second in _PAIRS)
    mixed = [column[i * 7919 % len(column)] for column in columns for i in range(len(column))]
    for name in dict.fromkeys(mixed):
        yield Lemma(normalise(name), "noun")


def english_lemmas(n: int, rng: np.random.Generator) -> tuple[Lemma, ...]:
    """Draw n words, the most frequent first: plain ones, then compounds, with every kind in a row like any text."""
    plain = plain_lemmas()
    by_kind = [[lemma for lemma in plain if lemma.kind == kind] for kind in ("noun", "verb", "adjective")]
    nouns, verbs, adjectives = ([drawn[i] for i in rng.permutation(len(drawn))] for drawn in by_kind)
    # Two nouns for each verb and adjective, as the sentences need them.
    rows = zip_longest(nouns[::2], nouns[1::2], verbs, adjectives)
    mixed = [lemma for row in rows for lemma in row if lemma is not None]
    if n > len(mixed):
        compounds = list(compound_lemmas())
        if n - len(mixed) > len(compounds):
            raise InputError(
                "world", f"{n} words are more than it has", f"ask for at most {len(mixed) + len(compounds)}"
            )
        mixed += [compounds[i] for i in rng.choice(len(compounds), n - len(mixed), replace=False)]
    return tuple(mixed[:n])


_IRREGULAR = {
    "child": "children", "tooth": "teeth", "knife": "knives",
    "potato": "potatoes", "tomato": "tomatoes", "hero": "heroes",
    "begin": "began", "bring": "brought", "buy": "bought", "catch": "caught", "choose": "chose", "dig": "dug",
    "drink": "drank", "eat": "ate", "fight": "fought", "forget": "forgot", "give": "gave", "grow": "grew",
    "hide": "hid", "know": "knew", "lend": "lent", "lose": "lost", "pay": "paid", "ride": "rode", "sell": "sold",
    "send": "sent", "sing": "sang", "sit": "sat", "sleep": "slept", "speak": "spoke",
    "steal": "stole", "swim": "swam", "teach": "taught", "tell": "told", "think": "thought", "throw": "threw",
    "understand": "understood", "win": "won", "write": "wrote", "forbid": "forbade", "forgive": "forgave",
    "freeze": "froze", "kneel": "knelt",
}  # fmt: skip
_UNCOUNTED = ("sheep", "fish", "sky", "money", "news", "trousers", "mathematics", "politics", "advice", "information")
_DOUBLING = ("admit", "beg", "clap", "drag", "drop", "grab", "knit", "stop", "wrap")


def plural(noun: str) -> str:
    """The plural of a noun, of the last part of a compound.

    >>> plural("berry"), plural("school-bus"), plural("child")
    ('berries', 'school-buses', 'children')
    """
    head, dash, last = noun.rpartition("-")
    if last in _UNCOUNTED:
        return noun
    return head + dash + (_IRREGULAR.get(last) or _with_s(last))


def third_person(verb: str) -> str:
    """What he, she or it does now."""
    return _with_s(verb)


def past(verb: str) -> str:
    """What somebody did.

    >>> past("stop"), past("dance"), past("cry"), past("swim")
    ('stopped', 'danced', 'cried', 'swam')
    """
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in _DOUBLING else "") + "ed"


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"
