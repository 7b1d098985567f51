"""Words around facts, and words that facts are commonly about, for `wording`."""
# ruff: noqa: RUF001 - many languages have their own signs

from typing import Final

# Agents put these around a fact, in languages that are written with spaces: articles, pronouns, forms of "be" and
# "have", the commonest prepositions. None of them says what to do, and no negation is among them.
GLUE: Final = """
a an and are as at be been by called for from has have he her hers him his i in is it its me mine my name named
of on or our person prefers she that the their them they this to user was we were who with you your speaker
works lives der die das den dem des ein eine einen einem einer er es ich ihr ihre ihren ist sein seine seinen
heisst hat habe und im am zu von mit auf für fur bin mein meine meinen nutzer nutzerin le la les l un une du de
d il elle je j est et ai à au aux en mon ma mes son sa ses que qui s m appelle utilisateur utilisatrice nom sur
avec pour suis el los las uno una unos unas del al soy yo mi mis su sus se y e con por para tiene tengo llama
llamo usuario usuaria nombre ella él o os um uma do da dos na nos nas é sou eu meu minha seu sua ele em com
chama chamo usuário usuária nome tem tenho lo gli di della dei è sono mio mia suo si chiama chiamo utente ha ho
lui lei het een ben ik mijn zijn haar hij zij gebruiker heet naam я меня мой моя мои мне он она его её ее и в на
с зовут это пользователь имя у есть по из jest jestem mam w z mój moja jego jej użytkownik imię nazywa nazywam
się ve bir bu benim onun kullanıcı adı var
"""

# The same in languages without spaces; longer ones stand before what they begin with.
GLUE_WITHOUT_SPACES: Final = """
用户 用戶 使用者 他的 她的 他 她 我的 我 名字是 名字叫 叫做 叫 是 的
ユーザー さん 私の 私 名前は です は が の
사용자는 사용자 이름은
"""

# What facts are commonly about. Nouns and adjectives alone: no instruction can be made of them.
TOPICS: Final = """
name nickname pronouns age birthday gender home address city country origin nationality language languages time
zone timezone job work role title profession employer company team school university studies course subject
project projects family partner spouse wife husband child children son daughter parents mother father brother
sister siblings friends pet pets dog cat diet food drink coffee tea meal allergy allergies health sleep exercise
hobby hobbies sport sports music instrument band book books reading film films series game games travel holiday
car bike transport phone computer device editor programming colour color favourite favorite preference
preferences preferred style tone format length answer answers units currency goal goals plan plans schedule
appointment appointments event events exam deadline interests interest skill skills experience number email
contact
"""
