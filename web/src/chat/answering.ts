import {streamChat} from '../api/chat';
import {Failure} from '../api/failure';
import type {ChatChunk} from '../api/types';
import {Store} from '../store';
import {changeMessage, find, openId, put} from './conversations';
import {chatSettings} from './settings';
import {add, change, kRoot, newConversation, newId, path, pathTo, requestMessages, type Message, type TextFile} from './tree';

/** The answers being written: [message]: how to stop each, and how much of its prompt is read. */
export interface Running {
  conversation: string;
  stop: AbortController;
  promptRead: number; // in [0, 1]
}
export const running = new Store<Record<string, Running>>({});

/** What was last said about an answer, for those who hear the page. */
export const announcement = new Store('');

export function stop(conversationId: string): void {
  for (const answer of Object.values(running.value)) {
    if (answer.conversation === conversationId) answer.stop.abort();
  }
}

/** Sends a message at the end of what is shown, in the open conversation or a new one. */
export function send(text: string, files: TextFile[]): void {
  const now = Date.now();
  const conversation = find(openId.value) ?? newConversation(now);
  const parent = path(conversation).at(-1)?.id ?? kRoot;
  put(add(conversation, {id: newId(), parent, role: 'user', text, files, created: now, state: 'done'}));
  openId.set(conversation.id);
  answerLast(conversation.id);
}

/** Puts another text beside a message: a branch of its own. One of the user's gets an answer. */
export function rewrite(conversationId: string, id: string, text: string): void {
  const conversation = find(conversationId);
  const message = conversation?.messages[id];
  if (!conversation || !message) return;
  const {parent, role, files} = message;
  put(add(conversation, {id: newId(), parent, role, files, text, created: Date.now(), state: 'done'}));
  if (role === 'user') answerLast(conversationId);
}

/** Another answer beside this one, or in place of one that did not come about. */
export function regenerate(conversationId: string, id: string): void {
  const conversation = find(conversationId);
  const message = conversation?.messages[id];
  if (!conversation || !message) return;
  if (message.text || message.reasoning) return answer(conversationId, message.parent);
  changeMessage(conversationId, id, {state: 'waiting', problem: undefined});
  void write(conversationId, id, pathTo(conversation, message.parent));
}

/** The rest of an answer that was stopped, cut or broken off. */
export function goOn(conversationId: string, id: string): void {
  const conversation = find(conversationId);
  if (!conversation?.messages[id]) return;
  changeMessage(conversationId, id, {state: 'writing', problem: undefined});
  void write(conversationId, id, pathTo(conversation, id));
}

function answerLast(conversationId: string): void {
  const conversation = find(conversationId);
  const last = conversation && path(conversation).at(-1);
  if (last) answer(conversationId, last.id);
}

function answer(conversationId: string, parent: string): void {
  const conversation = find(conversationId);
  if (!conversation) return;
  const message: Message = {id: newId(), parent, role: 'assistant', text: '', created: Date.now(), state: 'waiting'};
  put(add(conversation, message));
  void write(conversationId, message.id, pathTo(conversation, parent));
}

/** Lets an answer grow until it is complete, stopped or broken off; each way leaves its mark on it. */
async function write(conversationId: string, id: string, before: Message[]): Promise<void> {
  const stopper = new AbortController();
  setRunning(id, {conversation: conversationId, stop: stopper, promptRead: 0});
  announcement.set('Answering');
  const growing = new Growing(conversationId, id);
  try {
    const {system, values} = chatSettings.value;
    const request = {messages: requestMessages(before, system), settings: values};
    for await (const chunk of streamChat(request, stopper.signal)) growing.take(chunk);
    growing.end(growing.finish === 'length' ? 'cut' : 'done');
    announcement.set('The answer is complete');
  } catch (error) {
    if (stopper.signal.aborted) {
      growing.end('stopped');
      announcement.set('Stopped');
    } else {
      const problem = error instanceof Failure ? error.message : 'What the server sent cannot be read.';
      growing.end('failed', problem);
      announcement.set('');
    }
  } finally {
    setRunning(id, undefined);
  }
}

function setRunning(id: string, answer: Running | undefined): void {
  const {[id]: _, ...others} = running.value;
  running.set(answer ? {...others, [id]: answer} : others);
}

/** An answer as it grows: what arrives between two frames is shown together. */
class Growing {
  finish: string | null = null;
  private text: string;
  private reasoning: string;
  private frame = 0;

  constructor(
    private readonly conversationId: string,
    private readonly id: string,
  ) {
    const begun = find(conversationId)?.messages[id];
    this.text = begun?.text ?? '';
    this.reasoning = begun?.reasoning ?? '';
  }

  take(chunk: ChatChunk): void {
    const answer = running.value[this.id];
    if (chunk.prompt_progress && answer) {
      const {processed, total} = chunk.prompt_progress;
      setRunning(this.id, {...answer, promptRead: total > 0 ? processed / total : 0});
    }
    for (const choice of chunk.choices) {
      this.text += choice.delta.content ?? '';
      this.reasoning += choice.delta.reasoning_content ?? '';
      this.finish = choice.finish_reason ?? this.finish;
    }
    if (chunk.timings) changeMessage(this.conversationId, this.id, {timings: chunk.timings});
    if ((this.text || this.reasoning) && !this.frame) this.frame = requestAnimationFrame(() => this.show('writing'));
  }

  end(state: Message['state'], problem?: string): void {
    cancelAnimationFrame(this.frame);
    this.show(state, problem);
  }

  private show(state: Message['state'], problem?: string): void {
    this.frame = 0;
    const conversation = find(this.conversationId);
    if (!conversation) return;
    const reasoning = this.reasoning || undefined;
    put(change(conversation, this.id, {text: this.text, reasoning, state, problem}));
  }
}
