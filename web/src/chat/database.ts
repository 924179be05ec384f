import type {Conversation} from './tree';

const kName = 'coterie';
const kStore = 'conversations';

function finished<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The conversations in this browser: they never leave it but as prompts. */
export class Database {
  private constructor(private readonly database: IDBDatabase) {}

  /** Throws where the browser keeps nothing, as in some private windows. */
  static async open(): Promise<Database> {
    const request = indexedDB.open(kName, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(kStore, {keyPath: 'id'});
    return new Database(await finished(request));
  }

  all(): Promise<Conversation[]> {
    return finished(this.store('readonly').getAll() as IDBRequest<Conversation[]>);
  }
  async save(conversation: Conversation): Promise<void> {
    await finished(this.store('readwrite').put(conversation));
  }
  async remove(id: string): Promise<void> {
    await finished(this.store('readwrite').delete(id));
  }

  private store(mode: IDBTransactionMode): IDBObjectStore {
    return this.database.transaction(kStore, mode).objectStore(kStore);
  }
}
