() => {
    const main = document.querySelector("main") ?? document.body, walker = document.createTreeWalker(main, 5);
    const nodes = [], level = (node) => /^H[1-6]$/.test(node.tagName ?? "") && Number(node.tagName[1]);
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const drawn = /^(img|svg|video|audio|input|textarea|select|button)$/i;
    const shows = (node) => node.nodeType === 3
        ? Boolean(node.data.trim()) && node.parentElement.checkVisibility()
        : drawn.test(node.tagName) && node.checkVisibility();
    return nodes.filter((node) => level(node) && node.checkVisibility()).filter((heading) => {
        const after = nodes.slice(nodes.indexOf(heading) + 1).filter((node) => !heading.contains(node));
        const end = after.findIndex((node) => level(node) && level(node) <= level(heading));
        return !after.slice(0, end < 0 ? after.length : end).some(shows);
    }).map((heading) => heading.outerHTML.slice(0, 120));
}
