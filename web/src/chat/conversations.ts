import {keptStore, Store} from '../store';
import {Database} from './database';
import {change, type Conversation, type Message} from './tree';

const kSaveAfter = 400; // milliseconds: an answer being written changes many times a second

/** All conversations, and which one is open (empty: a new one). */
export const conversations = new Store<Conversation[]>([]);
export const openId = keptStore<string>('coterie.open', '');
/** Why nothing is kept, where that is so. */
export const storageProblem = new Store('');

let database: Database | undefined;
const unsaved = new Map<string, number>();

/** Reads what this browser keeps. Answers that a closed page left half-written count as stopped. */
export async function loadConversations(): Promise<void> {
  try {
    database = await Database.open();
    const kept = (await database.all()).map(settle);
    conversations.set([...conversations.value, ...kept].sort((a, b) => b.changed - a.changed));
  } catch {
    storageProblem.set('This browser keeps no data for this page: conversations end with the tab.');
  }
}

/** With its half-written answers stopped. */
export function settle(conversation: Conversation): Conversation {
  return Object.values(conversation.messages)
    .filter(({state}) => state === 'writing' || state === 'waiting')
    .reduce((settled, {id}) => change(settled, id, {state: 'stopped'}), conversation);
}

export function find(id: string): Conversation | undefined {
  return conversations.value.find((conversation) => conversation.id === id);
}

/** Adds or replaces a conversation; it is kept a moment later. */
export function put(conversation: Conversation): void {
  const others = conversations.value.filter(({id}) => id !== conversation.id);
  conversations.set([conversation, ...others].sort((a, b) => b.changed - a.changed));
  if (unsaved.has(conversation.id)) return;
  unsaved.set(conversation.id, window.setTimeout(() => save(conversation.id), kSaveAfter));
}

export function changeMessage(conversationId: string, id: string, changes: Partial<Message>): void {
  const conversation = find(conversationId);
  if (conversation) put(change(conversation, id, changes));
}

function save(id: string): void {
  window.clearTimeout(unsaved.get(id));
  unsaved.delete(id);
  const conversation = find(id);
  if (!conversation || !database) return;
  database.save(conversation).catch(() => {
    storageProblem.set('This browser has no more room: the last changes will be lost with this tab.');
  });
}

/** Saves at once what has changed, as a page does that is left. */
export function saveAll(): void {
  for (const id of [...unsaved.keys()]) save(id);
}

export function remove(id: string): void {
  conversations.update((all) => all.filter((conversation) => conversation.id !== id));
  if (openId.value === id) openId.set('');
  void database?.remove(id);
}
