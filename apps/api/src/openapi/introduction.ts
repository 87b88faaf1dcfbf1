/** Introduction of the API reference, in Markdown. A test runs its commands. */
export const introduction = `Submit a prompt, get an id at once, follow the request while it runs, and fetch its result. Submit:

\`\`\`sh
curl -s http://127.0.0.1:8080/v1/predict -H 'Content-Type: application/json' \\
  -d '{"prompt": "a fox on a green background", "seed": 7}'
\`\`\`

Follow the request until it ends; \`id\` is the \`request_id\` of the first answer:

\`\`\`sh
curl -sN http://127.0.0.1:8080/v1/predict/$id/events
\`\`\`

Fetch the image:

\`\`\`sh
curl -s -o fox.png http://127.0.0.1:8080/v1/predict/$id/images/0
\`\`\`

Instead of following events, poll \`GET /v1/predict/{id}\`, or submit with \`Prefer: wait=30\`. A server with keys expects
\`Authorization: Bearer <key>\`. The SDKs of OpenAI (base URL \`/v1\`), fal and Replicate work unchanged: their routes are views of the same
requests. Errors are \`{"message", "error": {"message", "type", "code", "param"}}\`; a 400 names the field, the value and what was expected.
Clients can be generated from \`/openapi.json\`: each \`operationId\` is stable.`;
