"""How people say things of themselves, in some European languages. Data, as `expressions` reads it.

Rules and no model: what is remembered is what somebody has said, in their own words, and the same
text always gives the same memory.
"""

_RELATIVES = r"""
    wife|husband|partner|girlfriend|boyfriend|fiancée?|sister|brother|mother|mom|mum|father|dad
    |son|daughter|kids?|child(?:ren)?|baby|grand\w+|aunt|uncle|cousin|parents|family
    |best friend|boss|manager|dog|cat|horse|rabbit|hamster|bird|pet"""

ENGLISH = rf"""
    my (?:full |first |last |real )?(?:name|nickname|surname) (?:is|'s)|(?:you (?:can
    |may) |please |just )?call me (?!back|later|when|if|a |an |the )|i(?:'m| am) called
    |i(?:'m| am) (?:also |now |currently |originally |severely |mildly |very )*(?:allergic
    |intolerant|lactose|gluten|vegan|vegetarian|pescatarian|diabetic|celiac|coeliac|pregnant
    |left-handed|right-handed|colou?r-?blind|deaf|dyslexic|asthmatic|married|single|divorced
    |engaged|widowed|retired|unemployed|self-employed|from |based in|living in|studying
    |learning|training for|working (?:as|at|for|in)|\d{{1,3}}(?: years? old)?\b)
    |i(?:'m| am) (?:an? |the )(?!bit|little|lot|few|huge fan|beginner question
    |fan of your)(?:[\w'-]+ ){{0,4}}(?:\w*(?:er|or|ist|ian|ant|ent|man|woman|nurse|cook|chef
    |pilot|student|vegan|parent|mother|father|beginner|judge|coach|monk|priest|clerk|guide
    |scientist|analyst))\b
    |i (?:currently |now |also |mostly |usually |always |never |really |only |still )*(?:live
    |reside|work|study|prefer|love|like|enjoy|hate|dislike|speak|own|drive|play|teach|eat|drink
    |collect|avoid|take|grew up|was born|moved to|come from|(?:don't|do not|can't|cannot
    |can not) (?:eat|drink|like|stand|use|drive|speak|smoke|have (?:any )?(?:kids|children|pets
    |allergies|a car|siblings)))\b(?! (?:to know|to ask|you\b|your|it\b|this|that you|how you))
    |i(?:'ve| have) (?:got )?(?:an?|one|two|three|four|five|six|\d+
    |no) (?:[\w'-]+ ){{0,3}}(?:{_RELATIVES}|dogs|cats|sons|daughters|brothers|sisters|allergy
    |allergies|diabetes|asthma|degree|car|bike|house|garden)\b|i have (?:diabetes
    |asthma|celiac|coeliac|adhd|dyslexia|autism|epilepsy|migraines?)
    |my (?:[\w'-]+ ){{0,2}}(?:{_RELATIVES})(?:s\b|'s\b|\b)(?: [\w'-]+){{0,3}} (?:is|are|was|has
    |have|lives?|works?|likes?|loves?|hates?|studies|plays?)\b|my (?:favou?rite
    |least favou?rite|preferred|native|first|home|birth|current) (?:[\w'-]+ ){{1,3}}(?:is|are
    |was|were)\b|my (?:birthday|anniversary|hometown|home town|address|email(?: address)?
    |e-mail|phone(?: number)?|timezone|time zone|job|profession|occupation|hobby|hobbies|budget
    |shoe size|height|weight|age|diet|religion|nationality|major|company|employer|team
    |pronouns) (?:is|are|was)\b"""
GERMAN = r"""
    mein (?:voller |voll\w+ )?(?:name|vorname|nachname|spitzname) ist|ich heiße|ich heisse
    |(?:bitte )?nenn(?:e|t|en sie)? mich\b
    |ich bin (?:auch |sehr |jetzt |eigentlich |stark )*(?:allergisch|laktoseintolerant
    |veganer(?:in)?|vegan|vegetarier(?:in)?|vegetarisch|diabetiker(?:in)?|schwanger|verheiratet
    |ledig|geschieden|verwitwet|rentner(?:in)?|pensioniert|linkshänder(?:in)?|farbenblind
    |selbstständig|von beruf|aus |in \w+ (?:geboren|aufgewachsen)|am \d|\d{1,3} jahre
    |(?:ein |eine )?\w+(?:er|erin|ist|istin|ent|entin|or|orin|arzt|ärztin|mann|frau|loge
    |login)\b)|ich (?:wohne|lebe|arbeite|studiere|lerne|bevorzuge|mag|liebe|hasse|esse|trinke
    |spreche|spiele|fahre|unterrichte|sammle|komme aus|stamme|vertrage kein\w*)\b(?! (?:wissen
    |es\b|das\b))|ich habe (?:eine?n?|zwei|drei|vier|fünf|\d+|keine?) (?:[\w-]+ ){0,2}(?:hund
    |hunde|katzen?|kind|kinder|sohn|söhne|tochter|töchter|bruder|brüder|schwestern?|frau|mann
    |freundin|freund|allergie|auto|haus|garten)\b|ich habe (?:diabetes|asthma|zöliakie)
    |ich wurde (?:am|in|im|\d)|meine? (?:[\w-]+ ){0,2}(?:frau|mann|partner(?:in)?|freund(?:in)?
    |schwester|bruder|mutter|vater|mama|papa|sohn|tochter|kind(?:er)?|eltern|oma|opa|großmutter
    |großvater|tante|onkel|chef(?:in)?|hund|katze|pferd)(?: [\w-]+){0,3} (?:heißt|heisst|heißen
    |ist|sind|hat|wohnt|lebt|arbeitet|mag|liebt)\b|meine? lieblings\w+ (?:ist|sind)
    |meine muttersprache ist|meine? (?:geburtstag|adresse|beruf|hobby|hobbys
    |e-mail(?:-adresse)?|telefonnummer|budget|schuhgröße|größe|alter|firma|arbeitgeber) (?:ist
    |sind)\b"""
FRENCH = r"""
    je m'appelle|mon (?:nom|prénom|surnom) est|(?:vous pouvez |tu peux )?(?:m'appeler
    |appelle-moi|appelez-moi)|j'habite|je vis (?:à|en|au|aux|dans|avec)|je (?:travaille|étudie
    |préfère|déteste|parle|joue|bois|mange|conduis|viens d|suis né)\w*|je ne (?:mange|bois
    |supporte|peux|parle) \w+|j'(?:aime|adore|étudie|apprends|enseigne|évite)\b|je n'aime pas
    |je suis (?:aussi |très |actuellement )*(?:allergique|intolérant|végétarien|végétalien
    |végane?|diabétique|enceinte|marié|célibataire|divorcé|veu\w+|retraité|gaucher|gauchère
    |daltonien|originaire|étudiant|médecin|professeur|une? \w+)\w*|j'ai \d{1,3} ans
    |j'ai (?:une?|deux|trois|quatre|\d+) (?:[\w'-]+ ){0,2}(?:chiens?|chats?|enfants?|fils
    |filles?|frères?|sœurs?|soeurs?|allergies?|voiture|maison|jardin)\b|(?:ma|mon
    |mes) (?:[\w'-]+ ){0,2}(?:femme|mari|compagn\w+|copine?|sœur|soeur|frère|mère|père|fils
    |fille|enfants?|parents|grand-\w+|tante|oncle|chef|patron\w*|chien\w*|chat\w*
    |amie?)(?: [\w'-]+){0,3} (?:s'appelle(?:nt)?|est|sont|a|habite|vit|travaille|aime)\b|(?:ma
    |mon|mes) (?:[\w'-]+ ){1,2}préférée?s? (?:est|sont)|ma langue maternelle est|(?:mon|ma
    |mes) (?:anniversaire|adresse|métier|profession|travail|adresse e-?mail|e-?mail|numéro
    |budget|pointure|taille|âge) (?:est|sont)\b"""
SPANISH = r"""
    me llamo|mi (?:nombre|apellido|apodo) es|(?:puedes )?ll[aá]mame|pueden? llamarme
    |(?:yo )?(?:vivo|trabajo|estudio|prefiero|odio|hablo|toco|juego|bebo|como|evito|nací|crecí
    |vengo de) (?:en|como|de|para|a|con|el|la|los|las|un|una|muy|mucho|solo|sólo|\w+)\b
    |(?:a mí )?(?:no )?me (?:gustan?|encantan?|fascinan?)|no (?:como|bebo|puedo (?:comer|beber)
    |soporto)\b|(?:yo )?(?:soy|estoy) (?:también |muy )*(?:alérgic[oa]|intolerante
    |vegetarian[oa]|vegan[oa]|diabétic[oa]|embarazada|casad[oa]|solter[oa]|divorciad[oa]
    |viud[oa]|jubilad[oa]|zurd[oa]|daltónic[oa]|de |una? \w+|estudiante|médic[oa]|profesora?
    |ingenier[oa]|enfermer[oa]|abogad[oa])|tengo \d{1,3} años|tengo (?:una?|dos|tres|cuatro
    |\d+) (?:[\w-]+ ){0,2}(?:perr[oa]s?|gat[oa]s?|hij[oa]s?|herman[oa]s?|niñ[oa]s?|alergias?
    |coche|casa|jardín)\b|tengo (?:diabetes|asma)|mis? (?:[\w-]+ ){0,2}(?:esposa?|marido|mujer
    |novi[oa]|pareja|herman[oa]s?|madre|padre|mamá|papá|hij[oa]s?|padres|abuel[oa]s?|tí[oa]
    |jef[ea]|perr[oa]|gat[oa]|amig[oa])(?: [\w-]+){0,3} (?:se llaman?|es|son|está|tiene|vive
    |trabaja)\b|mis? (?:[\w-]+ ){1,2}(?:favorit[oa]s?|preferid[oa]s?) (?:es|son)
    |mi lengua materna es|mis? (?:cumpleaños|dirección|trabajo|profesión|correo|email|teléfono
    |presupuesto|talla|edad|aficiones) (?:es|son)\b"""
ITALIAN = r"""
    mi chiamo|il mio (?:nome|cognome|soprannome) è|(?:puoi )?chiam(?:ami|armi)|(?:io )?(?:vivo
    |abito|lavoro|studio|preferisco|odio|parlo|suono|bevo|mangio|vengo da)\b
    |(?:non )?mi (?:piace|piacciono)|adoro|(?:io )?sono (?:anche |molto )*(?:allergic[oa]
    |intollerante|vegetarian[oa]|vegan[oa]|diabetic[oa]|incinta|sposat[oa]|single|divorziat[oa]
    |pensionat[oa]|mancin[oa]|daltonic[oa]|nat[oa]|di |un[oa']? ?\w+)|ho \d{1,3} anni
    |ho (?:un[oa']?|due|tre|\d+) ?(?:\w+ ){0,2}(?:can[ei]|gatt[oi]|figli[oa]?|fratell[oi]
    |sorell[ae]|allergi[ae])\b|(?:mi[oa]|il mio|la mia|i miei|le mie) (?:\w+ ){0,2}(?:moglie
    |marito|ragazz[oa]|compagn[oa]|sorell[ae]|fratell[oi]|madre|padre|figli[oa]?|genitori
    |nonn[oa]|zi[oa]|capo|cane|gatt[oa]|amic[oa])(?: \w+){0,3} (?:si chiama(?:no)?|è|sono|ha
    |vive|lavora)\b|(?:il mio|la mia) (?:\w+ ){1,2}preferit[oa] è|la mia lingua madre è"""
PORTUGUESE = r"""
    (?:o )?meu (?:nome|apelido|sobrenome) é|(?:eu )?me chamo|chamo-me|(?:pode )?(?:me chame
    |chama-me|me chamar)|(?:eu )?(?:moro|vivo|trabalho|estudo|prefiro|odeio|falo|toco|bebo
    |adoro|nasci|venho d\w)\b|(?:eu )?(?:não )?gosto d\w+|não (?:como|bebo|posso comer)
    |(?:eu )?sou (?:também |muito )*(?:alérgic[oa]|intolerante|vegetarian[oa]|vegan[oa]
    |diabétic[oa]|casad[oa]|solteir[oa]|divorciad[oa]|aposentad[oa]|canhot[oa]|daltônic[oa]
    |d[eoa] |uma? \w+|estudante|médic[oa]|professora?|engenheir[oa])|tenho \d{1,3} anos
    |tenho (?:uma?|dois|duas|três|\d+) (?:\w+ ){0,2}(?:cachorr[oa]s?|cão|cães|gat[oa]s?
    |filh[oa]s?|irm\w+|alergias?)\b|(?:o meu|a minha|meus?|minhas?) (?:\w+ ){0,2}(?:esposa
    |mulher|marido|namorad[oa]|irmã|irmão|mãe|pai|filh[oa]s?|pais|av[óô]|ti[oa]|chefe
    |cachorr[oa]|cão|gat[oa]|amig[oa])(?: \w+){0,3} (?:se chama|chama-se|é|são|tem|mora
    |trabalha)\b|(?:o meu|a minha|meu|minha) (?:\w+ ){1,2}(?:favorit[oa]|preferid[oa]) é"""
DUTCH = r"""
    mijn (?:naam|voornaam|achternaam|bijnaam) is|ik heet|noem me|je mag me|ik (?:woon|werk
    |studeer|leer|hou (?:niet )?van|haat|eet|drink|spreek|speel|kom uit|ben geboren)\b
    |ik heb liever|ik ben (?:ook |heel )*(?:allergisch|vegetariër|vegetarisch|veganist|vegan
    |diabeet|zwanger|getrouwd|vrijgezel|gescheiden|gepensioneerd|linkshandig|kleurenblind
    |\d{1,3} jaar|een \w+)|ik heb (?:een|twee|drie|\d+) (?:\w+ ){0,2}(?:hond(?:en)?|kat(?:ten)?
    |kind(?:eren)?|zoon|dochters?|broers?|zus(?:sen)?|allergie)\b|mijn (?:\w+ ){0,2}(?:vrouw
    |man|vriendin|vriend|zus|broer|moeder|vader|zoon|dochter|kinderen|ouders|oma|opa|baas|hond
    |kat)(?: \w+){0,3} (?:heet|heten|is|zijn|heeft|woont|werkt)\b|mijn lievelings\w+ is
    |mijn favoriete \w+ is"""

REMEMBER = r"""
    (?:please |and |also |bitte )*(?:(?:remember|keep in mind|note|don't forget
    |do not forget|make a note) (?:that|this:?|the following:?|:)\s|remember:\s
    |for (?:future reference|the record)[,:]?\s|from now on[,:]?\s|(?:merk dir|merke dir
    |merken sie sich|denk daran|denke daran|vergiss nicht)[,:]?\s(?:bitte[,:]?\s)?(?:dass\s)?
    |(?:souviens-toi|souvenez-vous|retiens|retenez|n'oublie pas|n'oubliez pas
    |note)\s?(?:bien\s)?(?:que\s|qu'|:\s)|(?:recuerda|recuerde|acuérdate de|no olvides
    |ten en cuenta|anota)\s(?:que\s|:\s)|(?:ricorda|ricordati|non dimenticare)\s(?:che\s|:\s)
    |(?:lembre-se|lembra-te|lembra|não (?:se )?esqueça)\s(?:de\s)?(?:que\s|:\s)|(?:onthoud
    |vergeet niet)\s(?:dat\s|:\s))"""
"""What asks for it in so many words; anything may follow."""

HYPOTHETICAL = r"""
    \b(?:if|suppose|supposing|imagine|imagining|pretend|pretending|what if|let's say|let us say
    |assume|assuming|hypothetically|as if|i wish|would be|would have|might be|role-?play\w*
    |act as|you are now|in the story|in my (?:novel|story|book|dream)|wenn|falls|angenommen
    |stell dir vor|stellen sie sich|nehmen wir an|wäre|hätte|würde|supposons|imagine[zr]?
    |admettons|comme si|serais|serait|aurais|supongamos|imagina|imaginemos|como si|sería|fuera
    |tuviera|supponiamo|immagina|come se|sarei|suponha|imagine|se eu fosse|stel dat|als ik)\b"""
REPORTED = r"""
    \b(?:he|she|they|someone|somebody|who|the (?:user|customer|client|character|man|woman|boy
    |girl)|er|sie|il|elle|él|ella) (?:said|says|told|wrote|asked|replied|answered|sagte|sagt
    |schrieb|meinte|a dit|dit|dijo|dice)\b"""
ABOUT_A_TEXT = r"""
    ^\W*(?:(?:can|could|would
    |will) you |please |kannst du |bitte |peux-tu |puedes |now )*(?:translat\w+|rewrite
    |rephrase|paraphrase|proofread|correct|edit|fix|improve|summari[sz]e|shorten|write|compose
    |draft|generate|create|continue|complete|classify|analy[sz]e|extract|convert|repeat
    |übersetz\w*|korrigier\w*|schreib\w*|formulier\w*|verbesser\w*|fass\w*|setz\w* fort
    |tradui\w+|corrig\w+|réécri\w+|écri\w+|résum\w+|rédig\w+|complèt\w+|tradu[cz]\w+|corrige\w*
    |reescrib\w+|escrib\w+|resum\w+|redact\w+|traduci|scrivi|correggi|riassumi|traduza|escreva
    |corrija|vertaal|schrijf|verbeter)\b"""
PASSING = r"""
    \b(?:(?:i'm|i am) (?:so |very |really |just |a (?:bit|little|lot) |not sure|sorry|curious
    |confused|looking|trying|going|wondering|getting|having|thinking|asking|interested|tired
    |hungry|bored|afraid|sure|done|back|ready|here|glad|happy|fine|ok\b|okay)|i (?:like|love
    |enjoy|hate|prefer) (?:it|that|this|your|the (?:first|second|third|idea|answer|way
    |sound))\b|i (?:would|'d) (?:like|love|prefer)|my (?:question|problem|issue|code|error
    |guess|point|idea|understanding|bad|script|program|query|text|essay|prompt|turn)\b
    |i (?:prefer|like|love|enjoy) (?:something|one|some|it)\b|without a mouth|coming up\b
    |ich (?:mag|liebe) (?:es|das)\b|meine frage|mein problem|je suis (?:désolé|fatigué|perdu
    |content|prêt|curieu|en train|sûr|d'accord)\w*|ma question|mon problème|me gusta (?:eso
    |esto|la idea|tu)\b|mi (?:pregunta|problema))"""
SECRET = r"""
    \b(?:password|passwort|passcode|passphrase|pin(?: (?:code|number))?|cvv|cvc|api[ -]?key
    |secret key|private key|access token|token|ssn|social security|credit card|kreditkarte\w*
    |kennwort|geheimzahl|mot de passe|code secret|carte (?:bancaire|de crédit)|contraseña|clave
    |tarjeta de crédito|parola d'ordine|senha|wachtwoord|pincode)\b"""


NAMED = r"""
    (?:I'm|I am|This is|Ich bin|Je suis|Soy|Sono|Sou|Eu sou|Ik ben)
     [^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)?(?=[,.!]|$| (?:and|from|und|aus|et|de|y|e|uit) )"""
"""Where capitals count."""

FILLER = r"""
    ^(?:(?:hi|hello|hey|hallo|bonjour|hola|ciao|olá|hoi|by the way|also|well|so|actually|btw|ok
    |okay|thanks|übrigens|au fait|por cierto)(?: there| all)?(?:[,!.]|$) ?)+"""

STATES = (
    r"""
    (?:^|[,;:] |\b(?:and|but|so|und|aber|et|mais|y|pero|e|ma|en) )(?:"""
    + "|".join((ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH))
    + ")"
)
"""Any of them, where something may begin."""
