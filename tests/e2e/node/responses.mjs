// openai-node, unmodified, on what a server keeps: node responses.mjs BASE_URL MODEL
// Prints one JSON line a check, {"check": …, "value": …}; the test asserts on them.
import { randomUUID } from 'node:crypto';
import OpenAI, { toFile } from 'openai';

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
const say = (check, value) => console.log(JSON.stringify({ check, value }));
const questions = [
  'What is the capital of France?', 'My name is Ada. Say hello.', 'Name one colour.',
  'Count to three.', 'What is two plus two?', 'Say goodbye.',
];
const short = { model, temperature: 0, max_output_tokens: 16 };
const endless = {
  model, input: 'Toss a coin again and again.', temperature: 0, max_output_tokens: 4000,
  text: {
    format: {
      type: 'json_schema', name: 'coins',
      schema: { type: 'array', items: { type: 'boolean' }, minItems: 2000 },
    },
  },
};

const all = async (iterable) => {
  const found = [];
  for await (const each of iterable) found.push(each);
  return found;
};
const textOf = (events) =>
  events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join('');
const numbersAreWhole = (events) => events.every((event, index) => event.sequence_number === index);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const refusal = async (promise) => {
  try {
    await promise;
    return null;
  } catch (error) {
    return { class: error.constructor.name, status: error.status, code: error.code, request_id: Boolean(error.requestID) };
  }
};
// An iterator that is not finished leaves the stream open, which `for await` would not.
const firstWords = async (iterator, texts = 4) => {
  const events = [];
  while (texts) {
    const { value } = await iterator.next();
    events.push(value);
    if (value.type === 'response.output_text.delta') texts -= 1;
  }
  return events;
};
const theRest = async (iterator) => {
  const events = [];
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) events.push(next.value);
  return events;
};

const answer = async (body, stream) => {
  if (!stream) return client.responses.create({ ...short, ...body });
  const events = await all(await client.responses.create({ ...short, ...body, stream: true }));
  const ended = events.at(-1).response;
  if (!numbersAreWhole(events)) throw new Error('numbers with gaps');
  return { ...ended, output_text: textOf(events) };
};

const dialogue = async (way, stream) => {
  const conversation = way === 'conversation' ? (await client.conversations.create()).id : undefined;
  const turns = [];
  for (const input of questions) {
    const before = conversation ? { conversation } : { previous_response_id: turns.at(-1)?.id };
    turns.push(await answer({ input, ...before }, stream));
  }
  const kept = await Promise.all(turns.map((turn) => client.responses.retrieve(turn.id)));
  const items = conversation
    ? await all(client.conversations.items.list(conversation, { order: 'asc', limit: 5 }))
    : null;
  return {
    texts: turns.map((turn) => turn.output_text),
    kept: kept.map((turn) => turn.output_text),
    tokens: turns.map((turn) => turn.usage.input_tokens),
    items: items?.map((item) => item.content[0].text) ?? null,
  };
};
const ways = ['conversation', 'chain'].flatMap((way) => [false, true].map((stream) => [way, stream]));
await Promise.all(ways.map(async ([way, stream]) => {
  say(`${way}_${stream ? 'streamed' : 'whole'}`, await dialogue(way, stream));
}));

{
  const stream = await client.responses.create({ ...endless, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  const events = await firstWords(iterator);
  const { id } = events[0].response;
  const cancelled = await client.responses.cancel(id);
  events.push(...await theRest(iterator));
  const kept = await client.responses.retrieve(id);
  say('cancelled', {
    status: cancelled.status, last: events.at(-1).type, kept: kept.status,
    is_whole: numbersAreWhole(events) && kept.output_text === textOf(events) && kept.output_text.length > 0,
  });
}

{
  const stream = await client.responses.create({ ...endless, stream: true });
  const events = await firstWords(stream[Symbol.asyncIterator]());
  stream.controller.abort();
  say('left', { id: events[0].response.id, text: textOf(events) });
}

{
  const { id } = await client.responses.create({ ...endless, background: true });
  const watching = await Promise.all([0, 1, 2].map(() => client.responses.retrieve(id, { stream: true })));
  const iterators = watching.map((stream) => stream[Symbol.asyncIterator]());
  const seen = await Promise.all(iterators.map((iterator) => firstWords(iterator)));
  const cancelled = await client.responses.cancel(id);
  const rest = await Promise.all(iterators.map(theRest));
  seen.forEach((events, index) => events.push(...rest[index]));
  say('watched', {
    status: cancelled.status, is_whole: numbersAreWhole(seen[0]),
    is_same: seen.every((events) => same(events, seen[0])),
    again: (await client.responses.cancel(id)).status,
  });
}

{
  const told = await all(await client.responses.create({ ...short, input: 'Name a city.', stream: true }));
  const { id } = told[0].response;
  const resumed = [];
  for (let after = -1; after < told.length; after += 1) {
    const rest = await all(await client.responses.retrieve(id, { stream: true, starting_after: after }));
    resumed.push(same(rest, told.slice(after + 1)));
  }
  const helper = client.responses.stream({ response_id: id, starting_after: 3 });
  const heard = [];
  helper.on('event', (event) => heard.push(event.sequence_number));
  const final = await helper.finalResponse();
  say('resumed', {
    places: resumed.length, is_same: resumed.every(Boolean),
    helper: final.output_text === textOf(told), first: heard[0],
  });
}

{
  const stream = await client.responses.create({ ...short, input: 'Tell me about Paris.', background: true, stream: true });
  const { value } = await stream[Symbol.asyncIterator]().next();
  stream.controller.abort();
  const events = await all(await client.responses.retrieve(value.response.id, { stream: true }));
  say('survived', { status: events.at(-1).response.status, text: textOf(events) });
}

{
  const conversation = (await client.conversations.create()).id;
  const stream = await client.responses.create({ ...endless, conversation, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  const events = await firstWords(iterator);
  say('locked', await refusal(client.responses.create({ ...short, input: 'Me too.', conversation })));
  await client.responses.cancel(events[0].response.id);
  await theRest(iterator);
  say('unlocked', (await client.responses.create({ ...short, input: 'Now?', conversation })).conversation.id === conversation);
}

{
  const headers = { 'Idempotency-Key': randomUUID() };
  const body = { ...short, input: 'Hello.' };
  const turns = await Promise.all([0, 1, 2].map(() => client.responses.create(body, { headers })));
  const events = await all(await client.responses.create({ ...body, stream: true }, { headers: { 'Idempotency-Key': `${headers['Idempotency-Key']}s` } }));
  const again = await all(await client.responses.create({ ...body, stream: true }, { headers: { 'Idempotency-Key': `${headers['Idempotency-Key']}s` } }));
  say('same_key', { ids: new Set(turns.map((turn) => turn.id)).size, is_same: same(events, again) });
  say('other_body', await refusal(client.responses.create({ ...short, input: 'Good-bye.' }, { headers })));
}

{
  // The first answer is lost on its way, after the server has given it: the SDK asks again by itself.
  let lost = 0;
  const retrying = new OpenAI({
    baseURL, apiKey: 'unused', maxRetries: 2,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (lost || !String(url).endsWith('/responses')) return response;
      lost += 1;
      await response.text();
      throw new TypeError('terminated');
    },
  });
  const conversation = (await client.conversations.create()).id;
  const turn = await retrying.responses.create({ ...short, input: 'Hello.', conversation });
  const items = await all(client.conversations.items.list(conversation, { order: 'asc' }));
  say('retried', { lost, is_once: same(items.map((item) => item.content[0].text), ['Hello.', turn.output_text]) });
}

{
  const mark = randomUUID();
  const made = await client.chat.completions.create({
    model, messages: [{ role: 'user', content: questions[0] }], temperature: 0, max_completion_tokens: 16,
    store: true, metadata: { mark },
  });
  const chats = client.chat.completions;
  const shown = await chats.retrieve(made.id);
  const listed = await all(chats.list({ metadata: { mark } }));
  const messages = await all(chats.messages.list(made.id));
  const updated = await chats.update(made.id, { metadata: { mark: 'moved' } });
  const deleted = await chats.delete(made.id);
  say('stored_chat', {
    is_same: shown.choices[0].message.content === made.choices[0].message.content,
    listed: listed.map((each) => each.id === made.id), messages: messages.map((each) => each.content),
    metadata: updated.metadata, deleted: deleted.deleted, gone: await refusal(chats.retrieve(made.id)),
  });
}

{
  const content = Buffer.from(`hello ${randomUUID()}`);
  const file = await client.files.create({ file: await toFile(content, 'a.txt'), purpose: 'user_data' });
  const read = Buffer.from(await (await client.files.content(file.id)).arrayBuffer());
  const listed = (await all(client.files.list())).some((each) => each.id === file.id);
  const deleted = (await client.files.delete(file.id)).deleted;
  say('file', { is_same: read.equals(content), listed, deleted, gone: await refusal(client.files.retrieve(file.id)) });
}

{
  const conversation = await client.conversations.create({ items: [{ role: 'user', content: 'Remember me.' }] });
  const turn = await client.responses.create({ ...short, input: 'Who?', conversation: conversation.id });
  await client.post(`/responses/${turn.id}/feedback`, { body: { rating: 'up' } });
  const listed = await client.get('/conversations', { query: { limit: 1 } });
  const branch = await client.post(`/conversations/${conversation.id}/branch`, { body: {} });
  const exported = await client.get(`/conversations/${branch.id}/export`);
  const deleted = await client.conversations.delete(conversation.id);
  say('conversation', {
    newest: listed.data[0].id === conversation.id, exported: exported.items.map((item) => item.content[0].text),
    answer: turn.output_text, deleted: deleted.deleted,
    gone: await refusal(client.conversations.retrieve(conversation.id)),
    turn_gone: await refusal(client.responses.retrieve(turn.id)),
  });
}
