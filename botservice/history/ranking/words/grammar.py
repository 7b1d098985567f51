"""Closed classes of the languages that are served best: function words, persons, questions, fillers.

Grammar, not vocabulary: words such as these carry no topic. Longer lists come from a library (see languages.py);
those have "work", "home" and "name" in them and so cannot be dropped outright, these can.
"""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Final = {
    "en": _words(
        "a an the this that these those i me my mine myself you your yours yourself he him his himself she "
        "her hers herself it its itself we us our ours ourselves they them their theirs themselves who whom "
        "whose which what when where why how am is are was were be been being do does did doing done have "
        "has had having will would shall should can could may might must and or but nor so if then than as "
        "of at by for with about against between into through during to from in out on off over under again "
        "there here not no n't s t d ll m re ve don didn doesn isn wasn aren weren won wouldn couldn shouldn "
        "hasn haven hadn im ive id dont didnt doesnt whats wheres whos hows cant u ur r pls plz please tell "
        "remember"
    ),
    "de": _words(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen ich mich mir mein meine "
        "meinen meinem meiner meines du dich dir dein deine deinen deinem deiner er ihn ihm sie ihr ihre "
        "ihren ihrem ihrer es wir uns unser unsere unseren unserem unserer euch euer eure sich sein seine "
        "seinen seinem seiner bin bist ist sind seid war waren warst wart gewesen habe hast hat haben habt "
        "hatte hatten hattest werde wirst wird werden wurde wurden kann kannst können konnte muss musst "
        "müssen soll sollte will wollte möchte darf und oder aber denn weil dass ob wenn als wie was wer wen "
        "wem wessen wo wohin woher wann warum wieso welche welcher welches welchen welchem von vom zu zum "
        "zur mit bei beim nach aus an am auf in im ins für über unter vor um durch gegen ohne bis seit nicht "
        "auch noch nur schon mal doch ja da hier dort dann so eigentlich nochmal bitte gell hab hatt nen ne "
        "is gesagt erzählt"
    ),
    "es": _words(
        "el la los las un una unos unas lo al del yo me mi mis mío mía míos mías conmigo tú te ti tu tus "
        "tuyo usted él ella ellos ellas nosotros nos nuestro nuestra nuestros nuestras vosotros os se su sus "
        "suyo le les de a en por para con sin sobre entre hasta desde y e o u pero que qué quien quién "
        "quienes quiénes cual cuál cuales cuáles como cómo cuando cuándo donde dónde adónde cuanto cuánto "
        "cuanta cuánta cuantos cuántos cuantas cuántas porque si sí no ni es son era eran fue fueron soy "
        "eres somos ser estoy está están estaba estaban estar he has ha hemos han había haber hay muy más ya "
        "también este esta esto estos estas ese esa eso esos esas aquel aquella dije dicho q xq favor"
    ),
    "fr": _words(
        "le la les l un une des du de d au aux je j me m moi mon ma mes mien mienne tu te t toi ton ta tes "
        "vous votre vos il elle on lui nous notre nos ils elles eux leur leurs se s son sa ses ce c cet "
        "cette ces ça cela qui que qu quoi quel quelle quels quelles quand où comment combien pourquoi est "
        "es suis sommes êtes sont était étais étaient été être ai as a avons avez ont avait avais avaient "
        "avoir et ou mais donc car si ne n pas plus en y à dans sur sous par pour avec sans chez vers depuis "
        "est-ce dit déjà aussi très bien jai cest"
    ),
    "it": _words(
        "il lo la i gli le un uno una del della dei delle di a da in con su per tra fra io mi me mio mia "
        "miei mie tu ti te tuo tua lui lei noi ci voi vi loro si suo sua che chi cosa quale quali quando "
        "dove come perché quanto quanti è sono era ero ho hai ha abbiamo hanno essere avere e o ma se non "
        "più anche questo questa"
    ),
    "pt": _words(
        "o a os as um uma de do da dos das em no na nos nas por para com sem eu me mim meu minha meus minhas "
        "tu te você seu sua ele ela nós nosso nossa eles elas que quem qual quais quando onde como porque "
        "quanto quantos é são era foi sou estou está tenho tem e ou mas se não mais também este esta isso"
    ),
    "ko": _words(
        "나 내 저 제 나의 저의 우리 너 네 당신 그 이 그것 이것 저것 뭐 뭐야 뭐였지 무엇 누구 언제 어디 "
        "어디서 왜 어떻게 얼마 몇 무슨 어떤 어느 있어 있었지 있지 했지 했어 했더라 였지 이었지 이야 야 거 것 "
        "수 때 좀 그리고 그런데 근데 말했 말한 말했지 기억 기억나 알려줘 뭐라고 뭐더라 "
        "뭘 뭔지 뭐지 뭐였더라 뭐예요 뭐였죠 뭐였어 무엇이 무엇을 무엇입니까 무엇이었나요 어디야 어디지 "
        "어디에 어디로 어디다 어디였지 어디예요 어디였더라 언제야 언제지 언제였지 언제예요 언제더라 "
        "언제였더라 언제까지 얼마야 얼마지 얼마나 얼마였지 누구야 누구지 누구한테 누구였지 누구예요 몇이지 "
        "어떻게 있나요 있어요 있습니까 있습니다 했나요 했더라 했었지 하나요 합니까 하지 하고 있고 있는 하는 "
        "한다고 했다고 중이더라 알려 주세요 알려주세요 거야 거지 게 데"
    ),
    "ja": _words(
        "は が を に で と も の へ や か ね よ な から まで より です ます した でした だ だった でしたっけ "
        "だっけ ですか ますか たっけ っけ って 私 僕 俺 わたし あなた 君 これ それ あれ この その あの ここ "
        "そこ 何 なに なん 誰 だれ いつ どこ なぜ どう どの どれ いくつ する して いる いた ある あった こと "
        "もの という ました ません たい ない"
    ),
    "zh": _words(
        "的 了 吗 呢 吧 啊 呀 嘛 是 在 有 和 与 就 都 也 还 又 很 不 没 我 你 他 她 它 们 这 那 哪 什 么 谁 "
        "怎 几 为 把 被 给 从 到 对 个 着 过 得 地 之 其 而 且 或 但 请 您 说 要 会 能 可 以 上 下 里 我的 "
        "你的 什么 哪里 哪儿 怎么 为什么 多少 时候 我們 我们 你们 他们 是不是 有没有 記得 记得 告诉"
    ),
}

SPEAKER: Final = _words(
    "i me my mine myself im ive id we us our ours ich mich mir mein meine meinen meinem meiner meines "
    "wir uns unser unsere unseren yo mi mis mío mía míos mías conmigo nosotros nuestro nuestra je j moi "
    "mon ma mes nous notre nos io mio mia miei mie noi eu meu minha meus minhas nós 나 내 저 제 나의 "
    "저의 우리 우리집 내가 제가 나는 저는 私 僕 俺 わたし 我 我们 我們 咱"
)
LISTENER: Final = _words(
    "you your yours yourself u ur du dich dir dein deine deinen deinem deiner ihr euch tú tu tus usted "
    "ti contigo toi ton tes vous votre vos você teu tua 너 네 네가 너는 당신 あなた 君 你 您 你的"
)
# Questions that are answered by a time or by a number, and words of times and numbers that answer them.
ASKS_WHEN: Final = _words(
    "when date wann datum cuándo fecha quand quando 언제 날짜 いつ 何時 何日 何月 几点 几号 几月 时候 哪天"
)
ASKS_NUMBER: Final = _words(
    "many much old cost costs price long often viel viele wieviel teuer alt kostet lang oft cuánto "
    "cuánta cuántos cuántas cuanto cuanta cuantos cuantas cuesta combien coûte quanto quanti 얼마 몇 "
    "いくら いくつ 何人 何回 何歳 几 多少 多大"
)
TIMES: Final = _words(
    "today yesterday tomorrow tonight week weeks weekend month months year years day days ago since soon "
    "morning afternoon evening night noon midnight am pm spring summer autumn winter heute gestern "
    "morgen vorgestern übermorgen woche wochen wochenende monat monate monaten jahr jahre jahren tag "
    "tage tagen seit vormittag nachmittag abend abends mittag uhr frühling sommer herbst hoy ayer mañana "
    "anteayer semana semanas mes meses año años día días tarde noche desde primavera verano otoño "
    "invierno aujourd hui hier demain semaine semaines mois an ans année jour jours matin soir midi "
    "depuis printemps été automne hiver 오늘 어제 내일 그저께 지난주 다음주 이번주 지난달 다음달 작년 "
    "올해 내년 주말 오전 오후 아침 저녁 월 일 년 시 요일 월요일 화요일 수요일 목요일 금요일 토요일 "
    "일요일 今日 昨日 明日 先週 来週 今週 先月 来月 今月 去年 今年 来年 週末 午前 午後 月 日 年 時 曜日 "
    "今天 昨天 明天 上周 下周 本周 上月 下月 明年 周末 上午 下午 早上 晚上 点 號 号 星期 january "
    "february march april june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday januar februar märz mai juni juli oktober dezember montag dienstag "
    "mittwoch donnerstag freitag samstag sonntag enero febrero marzo abril mayo junio julio agosto "
    "septiembre octubre noviembre diciembre lunes martes miércoles jueves viernes sábado domingo janvier "
    "février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi "
    "vendredi samedi dimanche"
)
NUMBERS: Final = _words(
    "one two three four five six seven eight nine ten eleven twelve twenty hundred thousand once twice "
    "couple few several dozen eins zwei drei vier fünf sechs sieben acht neun zehn zwölf zwanzig hundert "
    "tausend einmal zweimal dreimal paar uno dos tres cuatro cinco seis siete ocho nueve diez doce "
    "veinte cien mil docena deux trois quatre cinq sept huit neuf dix douze vingt cent mille fois 하나 "
    "둘 셋 넷 다섯 두 세 네 一 二 三 四 五 六 七 八 九 十 百 千 万 两"
)
QUESTION: Final = _words(
    "who whom whose which what when where why how whats wheres whos wer wen wem was wo wohin woher wann "
    "warum wieso welche welcher welches welchen wie qué quién quiénes cuál cuáles cómo cuándo dónde "
    "adónde cuánto cuántos cuánta cuántas qui quoi quel quelle quels quelles quand où comment combien "
    "pourquoi chi cosa quale dove quem qual onde 뭐 뭐야 무엇 누구 언제 어디 왜 어떻게 얼마 몇 무슨 何 "
    "なに 誰 いつ どこ なぜ どう いくら 谁 什么 哪里 怎么 几 多少 哪"
)
# Said to keep a talk going; nothing can be meant by searching for it.
FILLERS: Final = _words(
    "so very much lot lots ok okay okey k kk yes yeah yep yup no nope nah hi hello hey hiya yo bye "
    "goodbye thanks thank thx ty tysm cheers lol lmao haha hahaha "
    "hehe wow cool nice great good perfect awesome fine sure alright "
    "right exactly done got it hmm hm oh ah uh um welcome morning night ja nein doch jo jep klar danke "
    "dankeschön super gut toll prima passt alles genau hallo moin servus tschüss sí si vale claro "
    "gracias muchas hola adiós bien bueno perfecto genial dale oui non ouais merci beaucoup bonjour "
    "salut d'accord accord daccord parfait grazie ciao va bene obrigado obrigada olá 네 넵 예 응 ㅇㅇ "
    "아니 아니요 아니오 감사 감사합니다 고마워 고맙습니다 안녕 안녕하세요 좋아 좋아요 알겠어 알겠습니다 "
    "ㅋ ㅎ ㅠ ㅜ ㅇㅋ はい うん いいえ いや ありがとう ありがとうございます こんにちは おはよう "
    "了解 了解です わかった わかりました 好 好的 好吧 嗯 嗯嗯 是 是的 对 不 不是 行 谢谢 多谢 你好 您好 "
    "哈哈 哈哈哈 再见"
)
