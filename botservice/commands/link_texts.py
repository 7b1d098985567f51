"""What /link and /unlink say, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

LINK_MENU: Final[Texts] = {
    "en": "Tell me that you are the same person on another platform",
    "de": "Sag mir, dass du auf einer anderen Plattform dieselbe Person bist",
    "es": "Dime que eres la misma persona en otra plataforma",
    "fr": "Dites-moi que vous êtes la même personne sur une autre plateforme",
    "it": "Dimmi che sei la stessa persona su un’altra piattaforma",
    "pt": "Diga-me que você é a mesma pessoa em outra plataforma",
    "ru": "Сообщить мне, что вы тот же человек на другой платформе",
    "ko": "다른 플랫폼에서도 같은 사람임을 알리기",
    "ja": "別のプラットフォームでも同じ人だと伝える",
    "zh": "告诉我你在另一个平台上是同一个人",
}
UNLINK_MENU: Final[Texts] = {
    "en": "Take this account apart from your others",
    "de": "Dieses Konto von deinen anderen trennen",
    "es": "Separar esta cuenta de tus otras",
    "fr": "Séparer ce compte de vos autres comptes",
    "it": "Separare questo account dagli altri tuoi",
    "pt": "Separar esta conta das suas outras",
    "ru": "Отделить эту учётную запись от других ваших",
    "ko": "이 계정을 다른 계정과 분리하기",
    "ja": "このアカウントを他のアカウントから切り離す",
    "zh": "将此账户与你的其他账户分开",
}
IN_PRIVATE: Final[Texts] = {
    "en": "That is between you and me: write /link to me in a private chat.",
    "de": "Das ist zwischen dir und mir: Schreib mir /link in einem privaten Chat.",
    "es": "Eso queda entre tú y yo: escríbeme /link en un chat privado.",
    "fr": "Cela reste entre nous : écrivez-moi /link en privé.",
    "it": "Resta tra noi: scrivimi /link in privato.",
    "pt": "Isso fica entre nós: escreva /link para mim em particular.",
    "ru": "Это между нами: напишите мне /link в личном чате.",
    "ko": "우리 둘만의 일입니다. 개인 대화에서 /link 라고 보내 주세요.",
    "ja": "二人だけの話です。個人チャットで /link と送ってください。",
    "zh": "这只在我们之间：请在私聊里给我发 /link。",
}
OFFER: Final[Texts] = {
    "en": "Write this to me from your other account, within {minutes} minutes:\n\n`/link {code}`\n\nShow it to "
    "nobody: whoever "
    "gives it, and is confirmed here by you, counts as you. When you have given it there: /link confirm",
    "de": "Schreib mir das von deinem anderen Konto, innerhalb von {minutes} Minuten:\n\n`/link {code}`\n\nZeig es "
    "niemandem: "
    "Wer es nennt und hier von dir bestätigt wird, gilt als du. Wenn du es dort genannt hast: /link confirm",
    "es": "Escríbeme esto desde tu otra cuenta, en {minutes} minutos:\n\n`/link {code}`\n\nNo lo enseñes a nadie: "
    "quien lo dé "
    "y tú confirmes aquí, cuenta como tú. Cuando lo hayas dado allí: /link confirm",
    "fr": "Écrivez-moi ceci depuis votre autre compte, sous {minutes} minutes :\n\n`/link {code}`\n\nNe le montrez à "
    "personne : qui le donne, et que vous confirmez ici, passe pour vous. Une fois donné là-bas : /link confirm",
    "it": "Scrivimi questo dall’altro tuo account, entro {minutes} minuti:\n\n`/link {code}`\n\nNon mostrarlo a "
    "nessuno: chi lo "
    "dà, e viene confermato qui da te, vale come te. Quando l’hai dato lì: /link confirm",
    "pt": "Escreva isto para mim da sua outra conta, em {minutes} minutos:\n\n`/link {code}`\n\nNão mostre a "
    "ninguém: quem o "
    "der, e for confirmado aqui por você, conta como você. Quando o tiver dado lá: /link confirm",
    "ru": "Напишите мне это с другой вашей учётной записи в течение {minutes} минут:\n\n`/link {code}`\n\nНикому не "
    "показывайте: кто его назовёт и кого вы здесь подтвердите, считается вами. Когда назовёте там: /link confirm",
    "ko": "{minutes}분 안에 다른 계정에서 이렇게 보내 주세요:\n\n`/link {code}`\n\n아무에게도 보여 주지 마세요. 이 "
    "코드를 보내고 "
    "여기서 확인된 사람은 당신으로 여겨집니다. 보낸 뒤에는: /link confirm",
    "ja": "{minutes}分以内に、もう一つのアカウントからこう送ってください：\n\n`/link "
    "{code}`\n\n誰にも見せないでください。"
    "これを送り、ここで確認された人はあなたとみなされます。送ったら：/link confirm",
    "zh": "请在 {minutes} 分钟内从你的另一个账户发给我：\n\n`/link "
    "{code}`\n\n不要给任何人看：发出它并由你在此确认的人将被视为你。"
    "发完后：/link confirm",
}
LINKED: Final[Texts] = {
    "en": "Your accounts: {accounts}.",
    "de": "Deine Konten: {accounts}.",
    "es": "Tus cuentas: {accounts}.",
    "fr": "Vos comptes : {accounts}.",
    "it": "I tuoi account: {accounts}.",
    "pt": "Suas contas: {accounts}.",
    "ru": "Ваши учётные записи: {accounts}.",
    "ko": "당신의 계정: {accounts}.",
    "ja": "あなたのアカウント：{accounts}。",
    "zh": "你的账户：{accounts}。",
}
GIVEN_BUTTON: Final[Texts] = {
    "en": "I gave it there",
    "de": "Dort genannt",
    "es": "Ya lo di allí",
    "fr": "Je l’ai donné",
    "it": "L’ho dato lì",
    "pt": "Já dei lá",
    "ru": "Я его назвал там",
    "ko": "보냈습니다",
    "ja": "送りました",
    "zh": "我已在那边发送",
}
YES_BUTTON: Final[Texts] = {
    "en": "Yes, that is me",
    "de": "Ja, das bin ich",
    "es": "Sí, soy yo",
    "fr": "Oui, c’est moi",
    "it": "Sì, sono io",
    "pt": "Sim, sou eu",
    "ru": "Да, это я",
    "ko": "네, 저입니다",
    "ja": "はい、私です",
    "zh": "是的，是我",
}
IS_IT_YOU: Final[Texts] = {
    "en": "This is the code of {account}. Is that you? Then what I know of you is known in both accounts. If so: "
    "{order}",
    "de": "Das ist der Code von {account}. Bist du das? Dann ist, was ich über dich weiß, in beiden Konten bekannt. "
    "Wenn "
    "ja: {order}",
    "es": "Este es el código de {account}. ¿Eres tú? Entonces lo que sé de ti se sabrá en ambas cuentas. Si es así: "
    "{order}",
    "fr": "C’est le code de {account}. Est-ce vous ? Alors ce que je sais de vous sera connu des deux comptes. Si "
    "oui : "
    "{order}",
    "it": "Questo è il codice di {account}. Sei tu? Allora ciò che so di te sarà noto in entrambi gli account. Se "
    "sì: {order}",
    "pt": "Este é o código de {account}. É você? Então o que sei de você será conhecido nas duas contas. Se sim: "
    "{order}",
    "ru": "Это код {account}. Это вы? Тогда то, что я о вас знаю, будет известно в обеих учётных записях. Если да: "
    "{order}",
    "ko": "{account} 의 코드입니다. 본인인가요? 그러면 아는 것이 두 계정에서 공유됩니다. 맞다면: {order}",
    "ja": "{account} のコードです。ご本人ですか。そうなら、知っていることが両方のアカウントで使われます。"
    "はいの場合：{order}",
    "zh": "这是 {account} 的代码。是你吗？如果是，我对你的了解将在两个账户中共用。确认：{order}",
}
GAVE: Final[Texts] = {
    "en": "{account} gave your code. Is that you? Only then: {order}",
    "de": "{account} hat deinen Code genannt. Bist du das? Nur dann: {order}",
    "es": "{account} dio tu código. ¿Eres tú? Solo entonces: {order}",
    "fr": "{account} a donné votre code. Est-ce vous ? Seulement alors : {order}",
    "it": "{account} ha dato il tuo codice. Sei tu? Solo allora: {order}",
    "pt": "{account} deu o seu código. É você? Só então: {order}",
    "ru": "{account}: назван ваш код. Это вы? Только тогда: {order}",
    "ko": "{account} 이(가) 코드를 보냈습니다. 본인인가요? 그럴 때만: {order}",
    "ja": "{account} があなたのコードを送りました。ご本人ですか。その場合だけ：{order}",
    "zh": "{account} 发送了你的代码。是你吗？只有是你时才：{order}",
}
NOW_THERE: Final[Texts] = {
    "en": "Good. Now confirm it as {account}: press the button there, or write /link confirm.",
    "de": "Gut. Bestätige es jetzt als {account}: Drück dort den Knopf oder schreib /link confirm.",
    "es": "Bien. Ahora confírmalo como {account}: pulsa allí el botón o escribe /link confirm.",
    "fr": "Bien. Confirmez maintenant en tant que {account} : appuyez là-bas sur le bouton ou écrivez /link confirm.",
    "it": "Bene. Ora confermalo come {account}: premi lì il pulsante o scrivi /link confirm.",
    "pt": "Bom. Agora confirme como {account}: toque no botão lá ou escreva /link confirm.",
    "ru": "Хорошо. Теперь подтвердите как {account}: нажмите там кнопку или напишите /link confirm.",
    "ko": "좋습니다. 이제 {account} 에서 버튼을 누르거나 /link confirm 이라고 보내 확인해 주세요.",
    "ja": "では {account} として、そちらでボタンを押すか /link confirm と送って確認してください。",
    "zh": "好。现在以 {account} 的身份确认：在那边按按钮，或发送 /link confirm。",
}
NOT_YET: Final[Texts] = {
    "en": "The code has not been given yet, or not been agreed to there.",
    "de": "Der Code wurde noch nicht genannt, oder dort noch nicht zugestimmt.",
    "es": "El código aún no se ha dado, o allí no se ha aceptado.",
    "fr": "Le code n’a pas encore été donné, ou pas accepté là-bas.",
    "it": "Il codice non è ancora stato dato, o lì non è stato accettato.",
    "pt": "O código ainda não foi dado, ou não foi aceito lá.",
    "ru": "Код ещё не назван, или там ещё не согласились.",
    "ko": "코드가 아직 전달되지 않았거나 그쪽에서 동의하지 않았습니다.",
    "ja": "コードがまだ送られていないか、そちらで同意されていません。",
    "zh": "代码还没有被发送，或那边还没有同意。",
}
NONE_WAITS: Final[Texts] = {
    "en": "No code of yours is waiting. /link gives a new one.",
    "de": "Kein Code von dir wartet. /link gibt einen neuen.",
    "es": "Ningún código tuyo espera. /link da uno nuevo.",
    "fr": "Aucun code de vous n’attend. /link en donne un nouveau.",
    "it": "Nessun tuo codice è in attesa. /link ne dà uno nuovo.",
    "pt": "Nenhum código seu está esperando. /link dá um novo.",
    "ru": "Ни один ваш код не ждёт. /link даст новый.",
    "ko": "기다리는 코드가 없습니다. /link 로 새로 받으세요.",
    "ja": "待っているコードはありません。/link で新しいものを出せます。",
    "zh": "没有等待中的代码。/link 会给出新的。",
}
UNKNOWN: Final[Texts] = {
    "en": "I do not know this code. A code works once, for {minutes} minutes: /link gives a new one.",
    "de": "Diesen Code kenne ich nicht. Ein Code gilt einmal, {minutes} Minuten lang: /link gibt einen neuen.",
    "es": "No conozco este código. Un código vale una vez, durante {minutes} minutos: /link da uno nuevo.",
    "fr": "Je ne connais pas ce code. Un code vaut une fois, pendant {minutes} minutes : /link en donne un nouveau.",
    "it": "Non conosco questo codice. Un codice vale una volta, per {minutes} minuti: /link ne dà uno nuovo.",
    "pt": "Não conheço este código. Um código vale uma vez, por {minutes} minutos: /link dá um novo.",
    "ru": "Я не знаю этого кода. Код действует один раз, {minutes} минут: /link даст новый.",
    "ko": "모르는 코드입니다. 코드는 {minutes}분 동안 한 번만 쓸 수 있습니다. /link 로 새로 받으세요.",
    "ja": "このコードは分かりません。コードは{minutes}分間、一度だけ使えます。/link で新しいものを出せます。",
    "zh": "我不认识这个代码。代码在 {minutes} 分钟内只能用一次：/link 会给出新的。",
}
GUESSING: Final[Texts] = {
    "en": "Those were too many wrong codes. Try again in an hour.",
    "de": "Das waren zu viele falsche Codes. Versuch es in einer Stunde wieder.",
    "es": "Demasiados códigos erróneos. Inténtalo en una hora.",
    "fr": "Trop de codes faux. Réessayez dans une heure.",
    "it": "Troppi codici sbagliati. Riprova tra un’ora.",
    "pt": "Códigos errados demais. Tente de novo em uma hora.",
    "ru": "Слишком много неверных кодов. Попробуйте через час.",
    "ko": "틀린 코드가 너무 많습니다. 한 시간 뒤에 다시 해 주세요.",
    "ja": "間違ったコードが多すぎます。一時間後にお試しください。",
    "zh": "错误的代码太多了。请一小时后再试。",
}
SAME: Final[Texts] = {
    "en": "These two accounts are linked already.",
    "de": "Diese beiden Konten sind schon verknüpft.",
    "es": "Estas dos cuentas ya están vinculadas.",
    "fr": "Ces deux comptes sont déjà liés.",
    "it": "Questi due account sono già collegati.",
    "pt": "Estas duas contas já estão vinculadas.",
    "ru": "Эти две учётные записи уже связаны.",
    "ko": "두 계정은 이미 연결되어 있습니다.",
    "ja": "この二つのアカウントは既に連携しています。",
    "zh": "这两个账户已经关联。",
}
DONE: Final[Texts] = {
    "en": "Done: you are {account} too. /unlink, in either account, takes them apart again.",
    "de": "Erledigt: Du bist auch {account}. /unlink, in einem der Konten, trennt sie wieder.",
    "es": "Hecho: también eres {account}. /unlink, en cualquiera de las cuentas, las separa de nuevo.",
    "fr": "C’est fait : vous êtes aussi {account}. /unlink, dans l’un des comptes, les sépare à nouveau.",
    "it": "Fatto: sei anche {account}. /unlink, in uno degli account, li separa di nuovo.",
    "pt": "Feito: você também é {account}. /unlink, em qualquer das contas, separa de novo.",
    "ru": "Готово: вы также {account}. /unlink в любой из учётных записей разделит их снова.",
    "ko": "이제 당신은 {account} 이기도 합니다. 어느 계정에서든 /unlink 로 다시 분리할 수 있습니다.",
    "ja": "あなたは {account} でもあります。どちらかで /unlink と送れば切り離せます。",
    "zh": "好了：你也是 {account}。在任一账户发送 /unlink 可再次分开。",
}
ALONE: Final[Texts] = {
    "en": "This account is not linked to any other.",
    "de": "Dieses Konto ist mit keinem anderen verknüpft.",
    "es": "Esta cuenta no está vinculada a ninguna otra.",
    "fr": "Ce compte n’est lié à aucun autre.",
    "it": "Questo account non è collegato a nessun altro.",
    "pt": "Esta conta não está vinculada a nenhuma outra.",
    "ru": "Эта учётная запись не связана ни с какой другой.",
    "ko": "이 계정은 다른 계정과 연결되어 있지 않습니다.",
    "ja": "このアカウントはどれとも連携していません。",
    "zh": "此账户没有与其他账户关联。",
}
APART: Final[Texts] = {
    "en": "Done: this account is apart from {accounts}. What you told me here is known here alone.",
    "de": "Erledigt: Dieses Konto ist getrennt von {accounts}. Was du mir hier sagtest, ist nur hier bekannt.",
    "es": "Hecho: esta cuenta está separada de {accounts}. Lo que me dijiste aquí solo se sabe aquí.",
    "fr": "C’est fait : ce compte est séparé de {accounts}. Ce que vous m’avez dit ici n’est connu qu’ici.",
    "it": "Fatto: questo account è separato da {accounts}. Ciò che mi hai detto qui è noto solo qui.",
    "pt": "Feito: esta conta está separada de {accounts}. O que me disse aqui só se sabe aqui.",
    "ru": "Готово: эта учётная запись отделена от {accounts}. Сказанное здесь известно только здесь.",
    "ko": "이 계정을 {accounts} 와(과) 분리했습니다. 여기서 말한 것은 여기서만 알고 있습니다.",
    "ja": "このアカウントを {accounts} から切り離しました。ここで話したことはここだけのものです。",
    "zh": "好了：此账户已与 {accounts} 分开。你在这里告诉我的只在这里使用。",
}
