// The search runs in a Worker, which browsers refuse to start on a page that was opened as a file. There it runs in a hidden frame.
if (location.protocol === "file:") {
  const load = (frame, address) =>
    new Promise((done, failed) => {
      const script = frame.document.createElement("script");
      Object.assign(script, { src: address, onload: done, onerror: failed });
      frame.document.head.appendChild(script);
    });

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.element = document.createElement("iframe");
      this.element.hidden = true;
      document.body.appendChild(this.element);
      const frame = this.element.contentWindow;
      // Inside a worker postMessage speaks to the page, and scripts are imported one after the other.
      frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      frame.importScripts = (...more) => more.reduce((before, x) => before.then(() => load(frame, x)), Promise.resolve());
      this.ready = load(frame, address);
    }
    postMessage(data) {
      const frame = this.element.contentWindow;
      this.ready.then(() => frame.dispatchEvent(new frame.MessageEvent("message", { data })));
    }
    terminate() {
      this.element.remove();
    }
  };
}
