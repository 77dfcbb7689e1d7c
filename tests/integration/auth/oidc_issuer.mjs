// An OpenID provider for tests: `node oidc_issuer.mjs PORT JWKS`, with oidc-provider beside it.  Prints its URL.
import * as http from "node:http";
import Provider from "oidc-provider";

const [port, jwks] = process.argv.slice(2);
const scope = "condor:/READ condor:/WRITE";
const server = http.createServer();
server.listen(Number(port), "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const robot = {
    client_id: "robot",
    client_secret: "secret",
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    scope,
  };
  const provider = new Provider(url, {
    clients: [robot],
    jwks: JSON.parse(jwks),
    scopes: scope.split(" "),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          audience: resource,
          scope,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: new URL(resource).searchParams.get("alg") ?? "RS256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(url);
});
