/** Takes a stream of server-sent events apart, however it was cut, and gives the data of each event. */
export class EventStream {
  private rest = '';
  private data: string[] = [];

  push(text: string): string[] {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) this.take(line.endsWith('\r') ? line.slice(0, -1) : line, events);
    return events;
  }

  private take(line: string, events: string[]): void {
    if (line === '') {
      if (this.data.length > 0) events.push(this.data.join('\n'));
      this.data = [];
    } else if (line.startsWith('data:')) {
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }
}
