// A browser starts no worker from the disk. There the search of these pages runs in a hidden frame that stands for one.
if (location.protocol === "file:")
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      const base = new URL(url, location);
      const load = (source) => new Promise((done, failed) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: new URL(source, base), onload: done, onerror: failed });
        this.inner.document.body.append(script);
      });
      this.inner.importScripts = async (...sources) => { for (const source of sources) await load(source); };
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = load(base);
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
