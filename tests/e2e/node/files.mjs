// openai-node, unmodified, on files that are searched in: node files.mjs BASE_URL MODEL
// Prints one JSON line a check, {"check": …, "value": …}; the test asserts on them.
import { randomUUID } from 'node:crypto';
import OpenAI, { toFile } from 'openai';

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
const say = (check, value) => console.log(JSON.stringify({ check, value }));
const mark = randomUUID();
const manual = `# Pumps\n\nThe feed pump of plant ${mark} runs at 40 bar.\n\n# Lamps\n\nAll lamps are changed in March.\n`;
const question = 'At which pressure does the feed pump run?';
const upload = async (name, text) =>
  client.files.create({ file: await toFile(Buffer.from(text), name), purpose: 'assistants' });
const all = async (iterable) => {
  const found = [];
  for await (const each of iterable) found.push(each);
  return found;
};
const status = async (promise) => {
  try {
    await promise;
    return null;
  } catch (error) {
    return { class: error.constructor.name, status: error.status };
  }
};

const file = await upload('pumps.md', manual);
const store = await client.vectorStores.create({ name: 'plant', metadata: { mark } });
const tools = [{ type: 'file_search', vector_store_ids: [store.id], max_num_results: 3 }];
// Whatever the model makes of it, the answer has an end.
const format = { type: 'json_schema', name: 'pressure', schema: { enum: ['40 bar', '50 bar'] } };
const asked = { model, input: question, tools, temperature: 0, text: { format } };

{
  const added = await client.vectorStores.files.createAndPoll(store.id, { file_id: file.id, attributes: { year: 2024 } });
  const uploaded = await client.vectorStores.files.uploadAndPoll(
    store.id, await toFile(Buffer.from('The canteen is open at noon.'), 'canteen.txt'));
  const other = await upload('gate.txt', 'The gate is locked at ten.');
  const batch = await client.vectorStores.fileBatches.createAndPoll(store.id, { file_ids: [other.id] });
  const filled = await client.vectorStores.retrieve(store.id);
  const listed = await all(client.vectorStores.files.list(store.id, { filter: 'completed' }));
  const content = await all(client.vectorStores.files.content(file.id, { vector_store_id: store.id }));
  say('filled', {
    added: added.status, uploaded: uploaded.status, batch: batch.status, completed: filled.file_counts.completed,
    is_listed: [file.id, uploaded.id, other.id].every((id) => listed.some((each) => each.id === id)),
    says: content.map((part) => part.text).join('').includes('40 bar'),
  });
}

{
  const search = async (body) => (await all(client.vectorStores.search(store.id, body))).map((each) => each.file_id);
  const found = await all(client.vectorStores.search(store.id, { query: question, max_num_results: 2 }));
  const filters = (value) => ({ type: 'eq', key: 'year', value });
  say('search', {
    is_first: found[0].file_id === file.id, text: found[0].content[0].text, score: found[0].score, count: found.length,
    with_year: (await search({ query: question, filters: filters(2024) })).length,
    without: await search({ query: question, filters: filters(1999) }),
  });
}

{
  const response = await client.responses.create({ ...asked, include: ['file_search_call.results'] });
  const [call, message] = response.output;
  const kept = await client.responses.retrieve(response.id, { include: ['file_search_call.results'] });
  say('response', {
    types: [call.type, message.type], queries: call.queries, is_found: call.results[0].file_id === file.id,
    is_kept: JSON.stringify(kept.output) === JSON.stringify(response.output), text: response.output_text,
    marks: /【\d+】/.test(response.output_text),
  });
}

{
  const events = await all(await client.responses.create({ ...asked, stream: true }));
  const runner = client.responses.stream(asked);
  const final = await runner.finalResponse();
  say('streamed', {
    types: [...new Set(events.map((event) => event.type))].filter((type) => type.includes('file_search_call')),
    last: events.at(-1).type, helper: final.output.map((item) => item.type),
  });
}

{
  const part = { type: 'input_file', file_id: file.id };
  const content = [part, { type: 'input_text', text: question }];
  const response = await client.responses.create({
    model, input: [{ role: 'user', content }], temperature: 0, max_output_tokens: 16,
  });
  say('shown', response.context.files.map(({ file_id, fate }) => ({ is_it: file_id === file.id, fate })));
}

{
  const gone = await client.vectorStores.files.delete(file.id, { vector_store_id: store.id });
  const left = await all(client.vectorStores.search(store.id, { query: question }));
  const deleted = (await client.vectorStores.delete(store.id)).deleted;
  say('gone', {
    gone: gone.deleted, is_left: left.some((each) => each.file_id === file.id), deleted,
    store: await status(client.vectorStores.retrieve(store.id)), search: await status(client.responses.create(asked)),
    file: (await client.files.retrieve(file.id)).id === file.id,
  });
}
