// An OpenID provider for tests: `node provider.mjs NODE_MODULES PORT WORDS`, WORDS as JSON.  Prints its URL.
//
// It is oidc-provider's own code but for two things: it names an interval of its own between two questions for a device
// code, and the next token requests go wrong as `POST /faults` says: with an error of OAuth, a status, or a hang-up.
import * as http from "node:http";
import { pathToFileURL } from "node:url";

const [modules, port, words] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const { jwks, device, interval, accessTokenLife, groups, back } = JSON.parse(words);

const scope = "condor:/READ condor:/WRITE";
const faults = [];
const robot = {
  client_id: "robot",
  client_secret: "secret",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  scope,
};
const kettle = {
  client_id: "kettle",
  application_type: "native",
  token_endpoint_auth_method: "none",
  grant_types: device ? ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"] : ["authorization_code"],
  redirect_uris: device ? [] : ["http://127.0.0.1/back"],
  response_types: device ? [] : ["code"],
};
// A client whose codes are over after a second, and who is not told so.
const late = { ...kettle, client_id: "late" };

// Pages of a pool, to which browsers come back.
const pages = {
  ...kettle,
  client_id: "kettle-web",
  grant_types: ["authorization_code", "refresh_token"],
  redirect_uris: [back],
  response_types: ["code"],
};

async function faulty(context, next) {
  if (context.path === "/faults") {
    const pieces = [];
    for await (const piece of context.req) pieces.push(piece);
    faults.push(...JSON.parse(Buffer.concat(pieces)));
    context.status = 204;
    return;
  }
  const fault = context.path === "/token" ? faults.shift() : undefined;
  if (fault === "hang-up") {
    context.respond = false;
    context.req.socket.destroy();
  } else if (typeof fault === "number") {
    context.status = fault;
  } else if (fault !== undefined) {
    context.status = 400;
    context.body = { error: fault };
  } else {
    await next();
    if (context.path === "/device/auth" && context.status === 200) {
      context.body = { ...context.body, interval, expires_in: Math.max(context.body.expires_in, 60) };
    }
  }
}

const server = http.createServer();
server.listen(Number(port), "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(url, {
    clients: [robot, kettle, ...(device ? [late] : []), ...(back ? [pages] : [])],
    jwks,
    scopes: ["openid", "offline_access", ...scope.split(" ")],
    claims: { openid: ["sub"] },
    ttl: {
      AccessToken: accessTokenLife,
      DeviceCode: (_context, code) => (code.clientId === "late" ? 1 : 600),
      Grant: 3600,
      IdToken: 3600,
      Interaction: 3600,
      RefreshToken: 3600,
      Session: 3600,
    },
    rotateRefreshToken: true,
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    extraTokenClaims: (_context, token) => ({ groups: groups[token.accountId] }),
    features: {
      devInteractions: { enabled: device || Boolean(back) },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: device },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "https://pool.example.org/",
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          audience: resource,
          scope,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: new URL(resource).searchParams.get("alg") ?? "RS256" } },
        }),
      },
    },
  });
  provider.use(faulty);
  server.on("request", provider.callback());
  console.log(url);
});
