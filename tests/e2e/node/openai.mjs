// openai-node, unmodified, against a running server: node openai.mjs BASE_URL MODEL
// Prints one JSON line a check, {"check": …, "value": …}; the test asserts on them.
import OpenAI from 'openai';

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'unused', maxRetries: 0 });
const say = (check, value) => console.log(JSON.stringify({ check, value }));
const user = (content) => [{ role: 'user', content }];
const france = user('What is the capital of France?');

const whole = await client.chat.completions.create({ model, messages: france, temperature: 0, max_tokens: 24 });
say('whole', { text: whole.choices[0].message.content, finish: whole.choices[0].finish_reason, usage: whole.usage });

let text = '';
let usage = null;
let finish = null;
const chunks = await client.chat.completions.create({
  model, messages: france, temperature: 0, max_tokens: 24, stream: true, stream_options: { include_usage: true },
});
for await (const chunk of chunks) {
  text += chunk.choices[0]?.delta.content ?? '';
  finish = chunk.choices[0]?.finish_reason ?? finish;
  usage = chunk.usage ?? usage;
}
say('streamed', { text, finish, usage });

const helper = client.chat.completions.stream({ model, messages: france, temperature: 0, max_tokens: 24 });
say('helper', { text: await helper.finalContent() });

const stopped = await client.chat.completions.create({
  model, messages: france, temperature: 0, max_tokens: 64, stop: ['of Fr', 'Paris'],
});
say('stop', { text: stopped.choices[0].message.content, finish: stopped.choices[0].finish_reason });

const shaped = await client.chat.completions.create({
  model, messages: user('Describe Paris as JSON.'), temperature: 0, max_tokens: 120,
  response_format: {
    type: 'json_schema',
    json_schema: {
      name: 'city', strict: true,
      schema: {
        type: 'object', additionalProperties: false, required: ['name', 'capital'],
        properties: { name: { type: 'string', maxLength: 24 }, capital: { type: 'boolean' } },
      },
    },
  },
});
say('schema', JSON.parse(shaped.choices[0].message.content));

say('models', (await client.models.list()).data.map((entry) => entry.id));
say('model', (await client.models.retrieve(model)).id);

const refusals = {
  not_found: { model: 'no-such-model', messages: france },
  bad_request: { model, messages: [] },
  bad_type: { model, messages: france, temperature: 'hot' },
};
for (const [name, body] of Object.entries(refusals)) {
  try {
    await client.chat.completions.create(body);
    say(name, null);
  } catch (error) {
    say(name, {
      class: error.constructor.name, status: error.status, code: error.code, param: error.param, type: error.type,
      request_id: Boolean(error.requestID),
    });
  }
}

const aborted = await client.chat.completions.create({
  model, messages: user('Tell me a very long story.'), max_tokens: 400, stream: true,
});
for await (const chunk of aborted) {
  if (chunk.choices[0]?.delta.content) break;
}
say('aborted', aborted.controller.signal.aborted);

const judged = await client.moderations.create({ input: ['I want to kill them.', 'Good morning!'] });
say('moderations', {
  id: judged.id, model: judged.model, results: judged.results.length, flagged: judged.results[0].flagged,
  categories: Object.keys(judged.results[0].categories).length,
  types: judged.results[0].category_applied_input_types.violence,
});
