import {ask} from './client';
import {EventStream} from './event_stream';
import {brokenOff, Failure} from './failure';
import type {ChatChunk} from './types';

export interface ChatRequest {
  messages: {role: string; content: string}[];
  settings: Record<string, unknown>;
}

/** Asks for an answer and gives its chunks as they come. Throws a Failure, or AbortError after an abort. */
export async function* streamChat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatChunk> {
  const response = await ask('/v1/chat/completions', {
    method: 'POST',
    signal,
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({
      ...request.settings,
      messages: request.messages,
      stream: true,
      return_progress: true,
    }),
  });
  if (!response.body) throw brokenOff();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events = new EventStream();
  while (true) {
    const {done, value} = await read(reader, signal);
    if (done) throw brokenOff();
    for (const data of events.push(decoder.decode(value, {stream: true}))) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data) as ChatChunk;
      if (chunk.error) throw new Failure(`The answer failed: ${chunk.error.message}.`, 'broken');
      yield chunk;
    }
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal) {
  try {
    return await reader.read();
  } catch (error) {
    if (signal.aborted) throw error;
    throw brokenOff();
  }
}
