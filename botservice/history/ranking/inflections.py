"""Inflections that a stemmer cannot know: each line of a table has the forms of one word (grammar, a closed class)."""

from typing import Final

_ENGLISH: Final = """
arise arose arisen|awake awoke awoken|bear bore borne born|beat beaten|become became|begin began begun|bend bent|bet|bind bound|bite bit bitten
bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten
fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grind ground|grow grew grown|hang hung|hear heard
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|leap leapt|learn learnt|leave left|lend lent|lie lay lain
light lit|lose lost|make made|mean meant|meet met|pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said
see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spring sprang sprung
stand stood|steal stole stolen|stick stuck|sting stung|strike struck|strive strove|swear swore sworn|sweep swept|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
weave wove woven|weep wept|win won|wind wound|write wrote written|child children|man men|woman women|person people|foot feet
tooth teeth|goose geese|mouse mice|wife wives|knife knives|life lives|leaf leaves|half halves|shelf shelves|good better best|bad worse worst
"""
_GERMAN: Final = """
beginnen begann begonnen beginnt|beißen biss gebissen|biegen bog gebogen|bieten bot geboten|bitten bat gebeten|bleiben blieb geblieben
braten briet gebraten|brechen brach gebrochen bricht|bringen brachte gebracht|denken dachte gedacht|empfehlen empfahl empfohlen empfiehlt
essen aß gegessen isst|fahren fuhr gefahren fährt|fallen fiel gefallen fällt|fangen fing gefangen fängt|anfangen angefangen anfing
finden fand gefunden|fliegen flog geflogen|fressen fraß gefressen frisst|frieren fror gefroren|geben gab gegeben gibt|gehen ging gegangen
gewinnen gewann gewonnen|gießen goss gegossen|halten hielt gehalten hält|hängen hing gehangen|heißen hieß geheißen|helfen half geholfen hilft
kaufen gekauft|kennen kannte gekannt|kommen kam gekommen|laden lud geladen lädt|einladen eingeladen|lassen ließ gelassen lässt
laufen lief gelaufen läuft|leiden litt gelitten|leihen lieh geliehen|lesen las gelesen liest|liegen lag gelegen|lügen log gelogen
nehmen nahm genommen nimmt|nennen nannte genannt|reißen riss gerissen|reiten ritt geritten|rennen rannte gerannt|rufen rief gerufen
schlafen schlief geschlafen schläft|schlagen schlug geschlagen schlägt|schließen schloss geschlossen|schneiden schnitt geschnitten
schreiben schrieb geschrieben|schreien schrie geschrien|schwimmen schwamm geschwommen|sehen sah gesehen sieht|singen sang gesungen
sitzen saß gesessen|sprechen sprach gesprochen spricht|springen sprang gesprungen|stehen stand gestanden|stehlen stahl gestohlen stiehlt
steigen stieg gestiegen|sterben starb gestorben stirbt|tragen trug getragen trägt|treffen traf getroffen trifft|treten trat getreten tritt
trinken trank getrunken|tun tat getan|umziehen umgezogen zog gezogen ziehen|vergessen vergaß vergisst|verlieren verlor verloren
wachsen wuchs gewachsen wächst|waschen wusch gewaschen wäscht|werfen warf geworfen wirft|wissen wusste gewusst weiß|gut besser beste
"""
_SPANISH: Final = """
ir voy vas va vamos van fui fuiste fue fuimos fueron iba iban ido|decir digo dice dijo dije dicho dijeron|hacer hago hace hizo hice hecho hicieron
poner pongo pone puso puse puesto|venir vengo viene vino vine venido|traer traigo trae trajo traje traído|ver veo ve vi vio visto
dar doy da di dio dado|saber sé sabe supo supe|querer quiero quiere quiso quise|poder puedo puede pudo pude|tener tengo tiene tuvo tuve tenido
dormir duermo duerme durmió dormí|morir muere murió muerto|pedir pido pide pidió pedí|volver vuelvo vuelve volvió vuelto|abrir abierto
escribir escrito|romper roto|jugar juego juega jugó|empezar empiezo empieza empezó|perder pierdo pierde perdió perdí|costar cuesta cuestan costó
"""
_FRENCH: Final = """
aller vais vas va allons vont allé allée irai ira|venir viens vient venu venue viendra|prendre prends prend pris prise prennent|mettre mets met mis
voir vois voit vu vue verra|boire bois boit bu boivent|lire lis lit lu|écrire écris écrit écrite|recevoir reçois reçoit reçu reçue
devenir deviens devient devenu|tenir tiens tient tenu|savoir sais sait su|pouvoir peux peut pu|vouloir veux veut voulu voulait|faire fais fait font ferai fera
perdre perds perd perdu|vendre vends vend vendu|attendre attends attend attendu|répondre réponds répond répondu|naître né née|mourir meurt mort morte
offrir offre offert|ouvrir ouvre ouvert|courir cours court couru|vivre vis vit vécu|croire crois croit cru|conduire conduis conduit|œil yeux
"""


def _table(*texts: str) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for text in texts:
        for line in text.replace("|", "\n").split("\n"):
            forms = line.split()
            for form in forms:
                table.setdefault(form, set()).update(forms)
    return {form: frozenset(forms) for form, forms in table.items()}


FORMS_OF: Final = _table(_ENGLISH, _GERMAN, _SPANISH, _FRENCH)
