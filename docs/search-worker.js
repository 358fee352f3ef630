// Search in a manual that is opened from disk, where browsers start no worker: a frame does its work.
// It stands in for the script that the theme would load from the network (manual/hooks.py).
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) => Promise.all(addresses.map((each) => load(inside, each)));
      this.inside = inside;
      this.ready = load(inside, address);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };

  function load(inside, address) {
    return new Promise((loaded, failed) => {
      const script = inside.document.createElement("script");
      Object.assign(script, { src: new URL(address, location.href), async: false, onload: loaded, onerror: failed });
      inside.document.body.append(script);
    });
  }
}
