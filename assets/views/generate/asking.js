// Asks for what comes in parts, again and again until all of it is here or nobody wants it any more (views/generate_parts.py).

const asking = new Set(); // those that wait for a part

/** Streamlit's sign of a run that goes on, with a Stop of its own, stays away meanwhile (assets/theme/app.css). */
function mark() {
  if (asking.size) document.body.dataset.writing = "";
  else delete document.body.dataset.writing;
}

export class Asking {
  constructor(page) {
    Object.assign(this, { page, wanted: null });
  }

  /** Calls `take(part)` with each part. `query()` makes the question whenever it is sent, behind what has come by then. Throws the server's sentence. */
  async go(query, take) {
    this.end();
    const { signal } = (this.wanted = new AbortController());
    asking.add(this);
    mark();
    try {
      while (!signal.aborted) await this.page.stream(query, take, signal);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** All of it is here, or the page is rerun anyway. */
  end() {
    this.wanted?.abort();
    this.wanted = null;
    asking.delete(this);
    mark();
  }

  /** What the server is at is broken off too. */
  breakOff() {
    if (!this.wanted) return;
    this.end();
    this.page.interrupt();
  }
}
